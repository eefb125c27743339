// The first phases of a rank that mpirun or srun started, until its replica loads: MPI stands, the
// model file is open on every rank, the ranks have control connections. A phase that hangs ends the
// process with a line that names it; one that fails gives every rank the same answer.
#ifndef TRIREME_LAUNCHER_JOB_START_H_
#define TRIREME_LAUNCHER_JOB_START_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/mutex.h"
#include "runtime/comm/agreement.h"
#include "runtime/comm/mpi_communicator.h"
#include "runtime/engine/process_replica.h"
#include "runtime/weights/checkpoint.h"

namespace trireme::launcher {

// Ends the process with kStalled and a line that names the phase, unless Met or the destructor
// comes in time: before the control link stands, nothing else notices a rank that hangs.
class StartDeadline {
 public:
  StartDeadline(std::string phase, absl::Duration limit);
  ~StartDeadline();
  void Met();
  StartDeadline(const StartDeadline&) = delete;
  StartDeadline& operator=(const StartDeadline&) = delete;

 private:
  Notification over_;
  std::thread thread_;
};

// Until all ranks stand in MPI, which takes seconds, and tens of them on many hosts.
inline constexpr absl::Duration kLaunchLimit = absl::Seconds(60);
// Until all have control connections; longer than the limits inside, whose errors name a rank.
inline constexpr absl::Duration kConnectLimit = absl::Seconds(45);

// Starts MPI; log lines name the rank from then on. Errors: MpiWorld::Create's.
absl::StatusOr<std::unique_ptr<comm::MpiWorld>> JoinJob(absl::Duration limit = kLaunchLimit);

// A collective: opens the model on every rank. Where one cannot, all get the first failure, with
// its rank and host unless that is rank 0: so one rank can say it for all.
absl::StatusOr<std::unique_ptr<weights::Checkpoint>> OpenOnEveryRank(comm::MpiWorld& world,
                                                                     const std::string& path);

// A collective: FailedPrecondition, the same on all ranks, naming the first fact that differs with
// ranks, hosts and both values. Asked before anything is loaded.
absl::Status AgreeOnEveryRank(comm::MpiWorld& world, const std::vector<comm::Fact>& facts);

// ProcessReplica::Start. `on_connected` may be null.
absl::StatusOr<std::unique_ptr<engine::ProcessReplica>> StartInJob(
    comm::MpiWorld& world, const weights::Checkpoint& checkpoint,
    const engine::ReplicaOptions& options, absl::Duration connect_limit = kConnectLimit,
    const std::function<void()>& on_connected = nullptr);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_JOB_START_H_
