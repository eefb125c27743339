// A replica whose ranks are processes of one MPI job. Rank 0 is its controller; every other rank
// runs its loop until the controller says shutdown or somebody is lost. No rank outlives another: a
// failed one ends the replica.
#ifndef TRIREME_RUNTIME_ENGINE_PROCESS_REPLICA_H_
#define TRIREME_RUNTIME_ENGINE_PROCESS_REPLICA_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/control_monitor.h"
#include "runtime/comm/groups.h"
#include "runtime/engine/local_replica.h"
#include "runtime/engine/replica.h"
#include "runtime/weights/checkpoint.h"

namespace trireme::engine {

class ProcessReplica : public Replica {
 public:
  // A collective of all ranks: groups, heartbeats, loading, agreement on build, model and options.
  // Errors are those of StartLocalReplica on every rank, naming the rank and host that could not
  // start; FailedPrecondition when ranks disagree; Unavailable for a rank that is lost while the
  // others start. `on_connected`, if not null, is called once heartbeats go: from then on a rank
  // that hangs is noticed. `world` outlives the replica.
  static absl::StatusOr<std::unique_ptr<ProcessReplica>> Start(
      comm::MpiWorld& world, const weights::Checkpoint& checkpoint, const ReplicaOptions& options,
      const std::function<void()>& on_connected = nullptr);

  virtual int rank() const = 0;

  // Every rank but 0: its loop. OK after an ordered shutdown, else what was lost.
  virtual absl::Status RunWorker() = 0;

  // Rank 0: no more plans; tells every rank to leave, and waits for its own worker.
  virtual void Shutdown() = 0;

  // Tells the peers why this process ends; then the process may exit. Last call on every rank.
  virtual void Leave(const absl::Status& reason) = 0;
};

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_PROCESS_REPLICA_H_
