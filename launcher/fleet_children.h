// The children of a fleet, made from the topology file: what the Supervisor must know of each
// (ChildSpec), the command that starts it, where it answers and where its processes may be.
#ifndef TRIREME_LAUNCHER_FLEET_CHILDREN_H_
#define TRIREME_LAUNCHER_FLEET_CHILDREN_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/fleet_runner.h"
#include "launcher/supervisor.h"
#include "launcher/sweeper.h"

namespace trireme::launcher {

struct FleetChild {
  ChildSpec spec;
  std::string listen;                    // HOST:PORT
  std::string load_address;              // of its load reports; empty: as `listen`
  std::vector<std::string> rank_hosts;   // [ranks]
  std::vector<RemoteHost> remote_hosts;  // where its processes may be, besides this host
  int death_signal = 0;                  // when the supervisor dies
  std::function<std::vector<std::string>(uint64_t epoch)> words;
};

// Replicas in the order of the file, then balancers "balancer1", "balancer2", ... `this_host` is
// this machine's own name. `options` must outlive the children.
std::vector<FleetChild> MakeFleetChildren(const FleetOptions& options, const std::string& folder,
                                          const std::string& this_host);

// "127.0.0.1:8080" with its port replaced when it is 0 and `port` is known (above 0); a host that
// means all interfaces becomes the loopback address.
std::string ReachableAddress(absl::string_view listen, int port);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_FLEET_CHILDREN_H_
