// What `trireme serve` does once a replica runs, whatever its ranks are: the door before it, the
// warm-up token, the wait for an end, and the order in which things stop.
#ifndef TRIREME_LAUNCHER_SERVING_H_
#define TRIREME_LAUNCHER_SERVING_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "launcher/exit_codes.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/rank.h"
#include "runtime/engine/replica.h"
#include "runtime/serve/replica_facade.h"
#include "runtime/serve/server.h"
#include "runtime/weights/load_shard.h"

namespace trireme::launcher {

// Why the service ends. The first reason stays. Any thread.
class EndOfService {
 public:
  enum class Kind : uint8_t { kDrained, kLost, kTerminated };
  struct Reason {
    Kind kind = Kind::kDrained;
    absl::Status status;  // kLost
  };

  void Set(Reason reason);
  Reason Wait();

 private:
  Mutex mutex_;
  ConditionVariable set_;
  bool is_set_ ABSL_GUARDED_BY(mutex_) = false;
  Reason reason_ ABSL_GUARDED_BY(mutex_);
};

// Blocks the signals that end a service in this thread and those it starts later; call it first of
// all.
void BlockEndingSignals();

// What runs above this process: nothing; mpirun, which kills its ranks two seconds after a SIGTERM;
// or Slurm, which kills them 30 s (KillWait) after it.
enum class Launcher : uint8_t { kNone, kMpirun, kSlurm };

// From the environment; call it before any MPI call.
Launcher FindLauncher();

// Starts the thread that takes them: SIGUSR1 drains; SIGTERM, SIGINT and SIGHUP drain too, or,
// under mpirun, end the service now; a second one always does. In a job SIGHUP also comes when the
// launcher dies: a loss. A drain lets streams run for `drain_deadline`, less after Slurm's SIGTERM.
// Lives as long as the process. With `on_hangup` SIGHUP calls that instead, on the thread.
void WatchEndingSignals(serve::Server* server, EndOfService* end, Launcher launcher,
                        absl::Duration drain_deadline, std::function<void()> on_hangup = nullptr);

// What Admin.GetStatus shows beyond the door: how far the start or the end is, and the ranks. Any
// thread.
class StatusBoard {
 public:
  void SetPhase(absl::string_view detail);

  // The replica lives until another one, or null, is shown.
  void Show(const engine::Replica* replica);

  serve::StatusSnapshot Snapshot() const;

 private:
  mutable Mutex mutex_;
  std::string phase_detail_ ABSL_GUARDED_BY(mutex_);
  const engine::Replica* replica_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

// Listens where --listen and --admin-listen say, with `options` for the rest. Errors as
// serve::Server::Create; ExitCodeOfListen is theirs.
absl::StatusOr<std::unique_ptr<serve::Server>> Listen(serve::ServerOptions options);
ExitCode ExitCodeOfListen(const absl::Status& status);

// What the door shows of a replica; `queued_requests_max` is the controller's.
serve::ReplicaFacade FacadeOf(engine::Replica& replica, const engine::RankOptions& options,
                              const std::string& model_id, int64_t queued_requests_max);

// For a supervisor, which reads it from the log: how far this rank's loading is, every 10 %.
weights::LoadProgress LogProgress();

// Generates one token through all ranks.
absl::Status WarmUp(engine::Replica& replica);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_SERVING_H_
