// The controller of a balancer: a door (serve::Server) in front of it cannot tell it from a
// replica's own. Submit sends a request to a replica and feeds its stream from what comes back;
// when the replica is lost the request goes on elsewhere, and the stream never shows it.
//
// BalancerCore decides everything; this carries it out: the links to the replicas, the time, and
// the text and endings that the core does not look at.
//
// Thread rule: as engine::Controller. One mutex guards the core and the requests; what the core
// wants done is queued under it and carried out in that order, by one thread at a time, without it.
#ifndef TRIREME_RUNTIME_BALANCE_FORWARDING_CONTROLLER_H_
#define TRIREME_RUNTIME_BALANCE_FORWARDING_CONTROLLER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runtime/balance/balancer_core.h"
#include "runtime/balance/balancer_options.h"
#include "runtime/base/clock.h"
#include "runtime/engine/controller.h"

namespace trireme::balance {

struct ReplicaAddress {
  std::string name;      // what balancers agree on; unique
  std::string endpoint;  // HOST:PORT
};

struct ForwardingOptions {
  BalancerOptions core;
  std::vector<ReplicaAddress> replicas;
  std::string lease;    // unique in the fleet and among restarts: 1 to 40 of A-Z a-z 0-9 . _ -
  int connections = 2;  // to each replica
  absl::Duration silence_limit =
      absl::Seconds(3);  // without a load report a replica counts as lost
};

class ForwardingController : public engine::Controller {
 public:
  // Connects in the background. `clock` must outlive it.
  static std::unique_ptr<ForwardingController> Create(const ForwardingOptions& options,
                                                      Clock* clock);

  // BalancerCore::Reconfigure, between two events. Any thread.
  virtual void Reconfigure(const BalancerOptions& options) = 0;

  // For status pages. Any thread.
  virtual std::vector<ReplicaView> Replicas() const = 0;
  virtual BalancerCounts counts() const = 0;
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_FORWARDING_CONTROLLER_H_
