// The commands that a fleet is started with: what `trireme plan` prints and `trireme up` runs, word
// for word. Pure, but for the program's own path.
#ifndef TRIREME_LAUNCHER_FLEET_PLAN_H_
#define TRIREME_LAUNCHER_FLEET_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "launcher/replica_plan.h"
#include "topology/cluster.h"

namespace trireme::launcher {

// What the planner adds to a replica of the file.
struct ReplicaCut {
  std::vector<int64_t> stage_layers;
  int64_t kv_tokens = 0;  // positions of the KV cache
};

std::vector<ReplicaCut> CutsOf(const ClusterPlan& plan);

struct FleetStart {
  std::string program;           // path of the program, the same on all nodes
  std::string run_folder;        // of the supervisor
  std::string topology_path;     // the file, for balancers to read again; empty: none
  std::vector<ReplicaCut> cuts;  // [replicas], or empty: as the file says
  std::string fault_folder;      // of the replicas' --fault-injection; empty: none
};

// `index` counts the file's replicas, or its balancers.
std::vector<std::string> ReplicaStartWords(const topology::ClusterFile& file,
                                           const FleetStart& start, size_t index, uint64_t epoch);
std::vector<std::string> BalancerStartWords(const topology::ClusterFile& file,
                                            const FleetStart& start, size_t index, uint64_t epoch);

// "balancer1" for index 0.
std::string BalancerName(size_t index);

// A line for the shell for each child of a fleet that starts now, replicas first: each start takes
// the epoch after the one before.
std::vector<std::string> FleetCommandLines(const topology::ClusterFile& file,
                                           const FleetStart& start, uint64_t last_epoch);

// `path` as any process of this host finds it, whatever its working folder.
std::string AbsolutePath(const std::string& path);

// Where the running program lies.
std::string OwnPath();

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_FLEET_PLAN_H_
