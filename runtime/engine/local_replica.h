// A replica inside one process: its ranks are threads. What `trireme generate`, `score` and `bench`
// run, and what tests use to try any layout without MPI.
#ifndef TRIREME_RUNTIME_ENGINE_LOCAL_REPLICA_H_
#define TRIREME_RUNTIME_ENGINE_LOCAL_REPLICA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/comm/control_monitor.h"
#include "runtime/engine/rank.h"
#include "runtime/engine/replica.h"
#include "runtime/weights/checkpoint.h"
#include "runtime/weights/load_shard.h"

namespace trireme::engine {

// The first loss of a rank, as a status with RANK_LOST: Unavailable, or DeadlineExceeded for a step
// that does not finish. Called once at most, on a thread that must not be blocked; the controller
// has been told already.
using ReplicaLossHandler = std::function<void(const absl::Status& reason)>;

// How ranks that are processes find and watch each other.
struct LinkOptions {
  comm::MonitorOptions monitor;
  std::string interface;  // network interface between hosts; empty: any that answers
  absl::Duration connect_timeout = absl::Seconds(30);
};

struct ReplicaOptions {
  RankOptions ranks;  // limits may be incomplete (ResolveLimits)
  LinkOptions links;  // of ranks that are threads only the times of a stall
  int32_t queued_requests_max = 1024;
  weights::LoadProgress progress;  // of this process, all its ranks together; may be null
  ReplicaLossHandler on_loss;      // may be null
  StepHook before_step;            // of every rank of this process; may be null
};

// Cuts the model, loads every rank and starts the threads; the checkpoint may be closed afterwards.
// All errors name what is wrong, and nothing of a replica that failed to start is left behind:
// InvalidArgument and NotFound for options that cannot be, DataLoss for a file that cannot be used,
// ResourceExhausted for one that does not fit.
absl::StatusOr<std::unique_ptr<Replica>> StartLocalReplica(const weights::Checkpoint& checkpoint,
                                                           const ReplicaOptions& options);

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_LOCAL_REPLICA_H_
