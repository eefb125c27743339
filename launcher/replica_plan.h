// A topology file together with its model: how each replica is cut, what every rank takes in memory
// exactly, how many tokens and sequences fit, how fast it should be, and whether it all fits.
#ifndef TRIREME_LAUNCHER_REPLICA_PLAN_H_
#define TRIREME_LAUNCHER_REPLICA_PLAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/layer_times.h"
#include "runtime/engine/rank.h"
#include "runtime/weights/checkpoint.h"
#include "topology/cluster.h"
#include "topology/file_problem.h"
#include "topology/planner.h"

namespace trireme::launcher {

struct PlannedRank {
  int stage = 0;
  int tensor_rank = 0;
  int node_index = 0;
  std::vector<int> cores;  // of its own; empty: not bound
  int threads = 1;
  topology::Range layers;
  engine::RankBytes bytes;
  int64_t decode_bytes = 0;  // weights that one token reads
  int64_t kv_block_bytes = 0;
};

struct PlannedReplica {
  engine::RankOptions options;  // what every rank is started with; `threads` differs by stage
  std::vector<PlannedRank> ranks;
  topology::KvCapacity capacity;
  topology::SpeedPrediction speed;
  std::string speed_source;  // where the speeds of its nodes come from; empty: none were wanted
  std::vector<int64_t> faster_stage_layers;  // the cut by those speeds, where it is another one
};

struct ClusterPlan {
  std::vector<PlannedReplica> replicas;         // as in the file; empty when there are problems
  std::vector<topology::FileProblem> problems;  // what the model shows to be wrong in the file
  std::vector<std::string> misfits;             // hosts that do not hold their ranks
};

struct PlanQuestion {
  int64_t sequence_tokens = 0;  // 0: the context
  bool want_speed = true;       // measures where nothing is stated
};

// Errors are those of measuring; what is wrong with the file stands in the plan's problems.
absl::StatusOr<ClusterPlan> PlanCluster(const topology::ClusterFile& file,
                                        const weights::Checkpoint& checkpoint,
                                        const PlanQuestion& question);

// Whether the host is the one this program runs on, by its name.
bool IsThisHost(const std::string& host);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_REPLICA_PLAN_H_
