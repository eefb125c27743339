#include "launcher/local_model.h"

#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "launcher/command_line.h"
#include "launcher/exit_codes.h"
#include "launcher/job_start.h"
#include "launcher/load_progress.h"
#include "launcher/replica_options.h"
#include "runtime/base/log.h"
#include "runtime/comm/mpi_communicator.h"
#include "runtime/engine/local_replica.h"
#include "runtime/engine/process_replica.h"
#include "runtime/weights/checkpoint.h"

ABSL_FLAG(bool, quiet, false, "no progress and no plan on stderr");

namespace trireme::launcher {
namespace {

// What every rank does with the model once it is open.
struct Job {
  engine::ReplicaOptions options;
  absl::Time begin;
  const ModelPreparation& prepare;
  const ModelUser& use;

  absl::Status Prepare(const weights::Checkpoint& checkpoint) {
    return prepare ? prepare(checkpoint, &options.ranks) : absl::OkStatus();
  }
};

ExitCode RunInThisProcess(const std::string& path, Job job) {
  const auto checkpoint = weights::Checkpoint::Open(path);
  if (!checkpoint.ok()) {
    return Fail(ExitCodeOfFile(checkpoint.status()), checkpoint.status());
  }
  if (const absl::Status status = job.Prepare(**checkpoint); !status.ok()) {
    return Fail(ExitCode::kUsage, status);
  }
  const auto replica = engine::StartLocalReplica(**checkpoint, job.options);
  if (!replica.ok()) {
    return Fail(ExitCodeOfReplica(replica.status()), replica.status());
  }
  if (!absl::GetFlag(FLAGS_quiet)) {
    PrintRanks((*replica)->info());
  }
  return job.use(**replica, absl::Now() - job.begin);
}

// A lost rank ends the job at once: there is no stream to hand over.
void ExitOnLoss(const absl::Status& reason) {
  PrintError(reason.message());
  ::_exit(static_cast<int>(ExitCodeOfReplica(reason)));
}

// What failed, failed on every rank alike: rank 0 says it, and MPI ends in order.
ExitCode FailTogether(comm::MpiWorld& world, ExitCode code, const absl::Status& status) {
  if (world.rank() == 0) {
    PrintError(status.message());
  }
  (void)world.Finish();
  return code;
}

ExitCode UseInThisJob(comm::MpiWorld& world, const weights::Checkpoint& checkpoint,
                      const Job& job) {
  auto replica = StartInJob(world, checkpoint, job.options);
  if (!replica.ok()) {
    return world.rank() == 0 ? Fail(ExitCodeOfReplica(replica.status()), replica.status())
                             : ExitCodeOfReplica(replica.status());
  }
  ExitCode code = ExitCode::kOk;
  absl::Status ending;
  if ((*replica)->rank() == 0) {
    if (!absl::GetFlag(FLAGS_quiet)) {
      PrintRanks((*replica)->info());
    }
    code = job.use(**replica, absl::Now() - job.begin);
    (*replica)->Shutdown();
  } else {
    ending = (*replica)->RunWorker();
    code = ExitCodeOfReplica(ending);
  }
  (*replica)->Leave(ending);
  replica->reset();
  (void)world.Finish();  // a world that was aborted only says so
  return code;
}

ExitCode RunInThisJob(const std::string& path, Job job) {
  const auto world = JoinJob();
  if (!world.ok()) {
    return Fail(ExitCode::kOsError, world.status());
  }
  const auto checkpoint = OpenOnEveryRank(**world, path);
  if (!checkpoint.ok()) {
    return FailTogether(**world, ExitCodeOfFile(checkpoint.status()), checkpoint.status());
  }
  if (const absl::Status status = job.Prepare(**checkpoint); !status.ok()) {
    return FailTogether(**world, ExitCode::kUsage, status);
  }
  return UseInThisJob(**world, **checkpoint, job);
}

}  // namespace

ExitCode WithLocalModel(const ModelPreparation& prepare, const ModelUser& use) {
  const absl::StatusOr<ReplicaFlagValues> flags = ReadReplicaFlags();
  if (!flags.ok()) {
    return Fail(ExitCode::kUsage, flags.status());
  }
  const bool is_quiet = absl::GetFlag(FLAGS_quiet);
  if (is_quiet) {
    SetLogLevel(LogLevel::kWarning);
  }
  engine::ReplicaOptions options;
  options.ranks = flags->ranks;
  options.progress = is_quiet ? weights::LoadProgress() : ShowProgress("loading");
  options.on_loss = ExitOnLoss;
  Job job{.options = std::move(options), .begin = absl::Now(), .prepare = prepare, .use = use};
  return comm::IsStartedByMpi() ? RunInThisJob(flags->model, std::move(job))
                                : RunInThisProcess(flags->model, std::move(job));
}

}  // namespace trireme::launcher
