#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/core_list.h"
#include "launcher/fault_injection.h"
#include "launcher/job_start.h"
#include "launcher/load_progress.h"
#include "launcher/model_facade.h"
#include "launcher/observe_options.h"
#include "launcher/process_limits.h"
#include "launcher/rank_facts.h"
#include "launcher/replica_options.h"
#include "launcher/serve_flags.h"
#include "launcher/serving.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/log.h"
#include "runtime/base/metrics.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/mpi_communicator.h"
#include "runtime/comm/rank_place.h"
#include "runtime/engine/local_replica.h"
#include "runtime/engine/process_replica.h"
#include "runtime/serve/server.h"
#include "runtime/weights/checkpoint.h"

ABSL_FLAG(int32_t, queued_requests, 1024,
          "requests that may wait; more are refused, as in --queued-requests 100");
ABSL_DECLARE_FLAG(bool, quiet);

namespace trireme::launcher {
namespace {

// How long streams that were ended may take to leave before the process does.
constexpr absl::Duration kFarewell = absl::Milliseconds(500);

struct Flags {
  ReplicaFlagValues model;
  ServeFlagValues serve;
  Launcher launcher = Launcher::kNone;
  FaultInjection* faults = nullptr;
};

// Every rank says which phase of the start it has reached: a supervisor names the late ones.
// `detail` follows. An error is an injected one.
absl::Status EnterPhase(const Flags& flags, absl::string_view phase,
                        absl::string_view detail = "") {
  Log(LogLevel::kInfo, absl::StrCat("start phase=", phase, detail));
  return flags.faults->Reach(phase);
}

// `board` and `metrics` outlive the server.
serve::ServerOptions ServerOptionsOf(const ServeFlagValues& flags, const StatusBoard* board,
                                     Metrics* metrics) {
  serve::ServerOptions options;
  options.fault_injection = !flags.fault_folder.empty();
  options.door.metrics = metrics;
  options.drain_announce = flags.drain_announce;
  options.drain_deadline = flags.drain_deadline;
  options.status = [board, epoch = flags.epoch, injects = options.fault_injection] {
    serve::StatusSnapshot snapshot = board->Snapshot();
    snapshot.epoch = epoch;
    snapshot.fault_injection = injects;
    return snapshot;
  };
  return options;
}

// The controller's part of a service: warm up, open the door, wait, close in the right order.
class Service {
 public:
  Service(serve::Server* server, StatusBoard* board, EndOfService* end)
      : server_(*server), board_(*board), end_(*end) {}

  // Returns when the service has ended and all streams have their status.
  EndOfService::Reason Run(engine::Replica& replica, const Flags& flags) {
    if (!absl::GetFlag(FLAGS_quiet)) {
      PrintRanks(replica.info());
    }
    board_.Show(&replica);
    const EndOfService::Reason reason = OpenAndWait(replica, flags);
    board_.Show(nullptr);
    return reason;
  }

 private:
  // What every rank was doing: one line each, for whoever asks later why the replica was lost.
  void LogDump(engine::Replica& replica) {
    const engine::Load load = replica.controller().load();
    Log(LogLevel::kError,
        absl::StrCat("dump waiting=", load.waiting_requests, " running=", load.running_sequences,
                     " queued_tokens=", load.queued_tokens));
    for (const engine::RankStatus& rank : replica.RankStatuses()) {
      Log(LogLevel::kError,
          absl::StrCat("dump rank=", rank.rank, " host=", rank.host, " process=", rank.process_id,
                       " step=", rank.step, " phase=", engine::RankPhaseName(rank.phase),
                       " heartbeat_age=", absl::FormatDuration(rank.heartbeat_age)));
    }
  }

  EndOfService::Reason OpenAndWait(engine::Replica& replica, const Flags& flags) {
    board_.SetPhase("warm-up");
    if (const absl::Status status = WarmUp(replica); !status.ok()) {
      // A loss that the replica has told of says more, and stays the reason.
      end_.Set({.kind = EndOfService::Kind::kLost, .status = status});
      const EndOfService::Reason reason = end_.Wait();
      LogDump(replica);
      return {.kind = EndOfService::Kind::kLost,
              .status = reason.status.ok() ? status : reason.status};
    }
    board_.SetPhase("serving");
    const std::string model_id = ModelId(flags.model.model);
    serve::ReplicaFacade facade =
        FacadeOf(replica, flags.model.ranks, model_id, absl::GetFlag(FLAGS_queued_requests));
    facade.epoch = flags.serve.epoch;
    server_.Open(std::move(facade));
    Log(LogLevel::kInfo, absl::StrCat("serving port=", server_.port(), " model=", model_id));
    std::thread drained([this] {
      server_.Wait();
      end_.Set({.kind = EndOfService::Kind::kDrained, .status = absl::OkStatus()});
    });
    const EndOfService::Reason reason = end_.Wait();
    board_.SetPhase(reason.status.ok() ? "end" : absl::StrCat("end: ", reason.status.message()));
    if (reason.kind == EndOfService::Kind::kLost) {
      Log(LogLevel::kError, absl::StrCat("replica lost reason=\"", reason.status.message(), "\""));
      server_.EndStreams(
          WithReason(absl::UnavailableError(reason.status.message()),
                     ReasonOf(reason.status).empty() ? kReasonRankLost : ReasonOf(reason.status)));
      LogDump(replica);
    } else if (reason.kind == EndOfService::Kind::kTerminated) {
      server_.EndStreams(WithReason(absl::UnavailableError("the replica ends"), kReasonDraining));
    }
    server_.WaitForStreams(kFarewell);
    server_.Shutdown();
    drained.join();
    return reason;
  }

  serve::Server& server_;
  StatusBoard& board_;
  EndOfService& end_;
};

ExitCode CodeOf(const EndOfService::Reason& reason) {
  if (reason.kind == EndOfService::Kind::kLost) {
    return Fail(ExitCodeOfReplica(reason.status), reason.status);
  }
  return ExitCode::kOk;
}

weights::LoadProgress ProgressOf(const ServeFlagValues& flags) {
  if (!flags.replica.empty()) {
    return LogProgress();
  }
  return absl::GetFlag(FLAGS_quiet) ? weights::LoadProgress() : ShowProgress("loading");
}

engine::ReplicaOptions OptionsOf(const Flags& flags, EndOfService* end) {
  engine::ReplicaOptions options;
  options.ranks = flags.model.ranks;
  options.links = flags.serve.links;
  options.queued_requests_max = absl::GetFlag(FLAGS_queued_requests);
  options.progress = ProgressOf(flags.serve);
  options.on_loss = [end](const absl::Status& reason) {
    end->Set({.kind = EndOfService::Kind::kLost, .status = reason});
  };
  if (flags.faults->enabled()) {
    options.before_step = [faults = flags.faults](const engine::StepPlan& plan) {
      return faults->Reach(plan.token_ids.size() > plan.sequences.size() ? "prefill" : "decode");
    };
  }
  return options;
}

ExitCode ServeInThisProcess(const weights::Checkpoint& checkpoint, const Flags& flags) {
  Metrics metrics;
  StatusBoard board;
  board.SetPhase("load");
  const auto server = Listen(ServerOptionsOf(flags.serve, &board, &metrics));
  if (!server.ok()) {
    return Fail(ExitCodeOfListen(server.status()), server.status());
  }
  EndOfService end;
  WatchEndingSignals(server->get(), &end, Launcher::kNone, flags.serve.drain_deadline);
  absl::Status injected = EnterPhase(flags, "load");
  auto replica = engine::StartLocalReplica(checkpoint, OptionsOf(flags, &end));
  injected.Update(EnterPhase(flags, "warmup"));
  injected.Update(replica.status());
  if (!injected.ok()) {
    return Fail(ExitCodeOfReplica(injected), injected);
  }
  const EndOfService::Reason reason = Service(server->get(), &board, &end).Run(**replica, flags);
  const ExitCode code = CodeOf(reason);
  if (reason.kind == EndOfService::Kind::kLost) {
    ::_exit(static_cast<int>(code));  // a thread of the replica may never come back
  }
  return code;
}

absl::StatusOr<std::unique_ptr<engine::ProcessReplica>> StartRank(
    comm::MpiWorld& world, const weights::Checkpoint& checkpoint, const Flags& flags,
    StatusBoard* board, EndOfService* end) {
  RETURN_IF_ERROR(EnterPhase(flags, "connect"));
  absl::Status injected;
  auto replica = StartInJob(world, checkpoint, OptionsOf(flags, end), flags.serve.connect_limit,
                            [board, &flags, &injected] {
                              board->SetPhase("load");
                              injected = EnterPhase(flags, "load");
                            });
  if (replica.ok()) {
    injected.Update(EnterPhase(flags, "warmup"));
    RETURN_IF_ERROR(injected);
  }
  return replica;
}

// A rank without a door: its loop, until the controller ends it or somebody is lost.
ExitCode RunWorkerRank(comm::MpiWorld& world, const weights::Checkpoint& checkpoint,
                       const Flags& flags) {
  EndOfService end;
  StatusBoard board;
  const auto replica = StartRank(world, checkpoint, flags, &board, &end);
  if (!replica.ok()) {
    ::_exit(static_cast<int>(ExitCodeOfReplica(replica.status())));  // rank 0 says why
  }
  const absl::Status ending = (*replica)->RunWorker();
  (*replica)->Leave(ending);
  if (!ending.ok()) {
    Log(LogLevel::kError, absl::StrCat("rank leaves reason=\"", ending.message(), "\""));
    ::_exit(static_cast<int>(ExitCodeOfReplica(ending)));  // MPI cannot end in order any more
  }
  (void)world.Finish();
  return ExitCode::kOk;
}

ExitCode ServeInThisJob(comm::MpiWorld& world, const weights::Checkpoint& checkpoint,
                        const Flags& flags) {
  Metrics metrics;
  StatusBoard board;
  board.SetPhase("connect");
  const auto server = Listen(ServerOptionsOf(flags.serve, &board, &metrics));
  if (!server.ok()) {
    const ExitCode code = Fail(ExitCodeOfListen(server.status()), server.status());
    ::_exit(static_cast<int>(code));  // ends the job: the other ranks wait for this one
  }
  EndOfService end;
  WatchEndingSignals(server->get(), &end, flags.launcher, flags.serve.drain_deadline);
  const auto replica = StartRank(world, checkpoint, flags, &board, &end);
  if (!replica.ok()) {
    const ExitCode code = Fail(ExitCodeOfReplica(replica.status()), replica.status());
    (*server)->Shutdown();
    ::_exit(static_cast<int>(code));  // MPI cannot end in order without every rank
  }
  const EndOfService::Reason reason = Service(server->get(), &board, &end).Run(**replica, flags);
  const ExitCode code = CodeOf(reason);
  if (reason.kind == EndOfService::Kind::kLost) {
    (*replica)->Leave(reason.status);
    ::_exit(static_cast<int>(code));
  }
  (*replica)->Shutdown();
  (*replica)->Leave(absl::OkStatus());
  (void)world.Finish();
  return code;
}

ExitCode RunInJob(const Flags& flags) {
  const auto world = JoinJob(flags.serve.launch_limit);
  if (!world.ok()) {
    return Fail(ExitCode::kOsError, world.status());
  }
  const bool is_controller = (*world)->rank() == 0;
  flags.faults->SetAbort([world = world->get()](int code) { world->AbortJob(code); });
  const auto checkpoint = OpenOnEveryRank(**world, flags.model.model);
  if (!checkpoint.ok()) {
    const ExitCode code = ExitCodeOfFile(checkpoint.status());
    if (is_controller) {
      PrintError(checkpoint.status().message());
    }
    (void)(*world)->Finish();
    return code;
  }
  if (const absl::Status alike =
          AgreeOnEveryRank(**world, RankFacts(**checkpoint, flags.model.ranks));
      !alike.ok()) {
    if (is_controller) {
      PrintError(alike.message());
    }
    (void)(*world)->Finish();
    return ExitCodeOfReplica(alike);
  }
  return is_controller ? ServeInThisJob(**world, **checkpoint, flags)
                       : RunWorkerRank(**world, **checkpoint, flags);
}

// Of the ranks that are processes, or all cores together where they are threads of this one.
absl::Status BindRank(const ServeFlagValues& flags, bool is_job) {
  if (flags.rank_cores.empty()) {
    return absl::OkStatus();
  }
  if (is_job) {
    return BindToCores(flags.rank_cores[RankFromEnvironment() % flags.rank_cores.size()]);
  }
  std::vector<int> all;
  for (const std::vector<int>& cores : flags.rank_cores) {
    all.insert(all.end(), cores.begin(), cores.end());
  }
  return BindToCores(all);
}

absl::StatusOr<Flags> ReadFlags() {
  Flags flags;
  ASSIGN_OR_RETURN(flags.model, ReadReplicaFlags());
  ASSIGN_OR_RETURN(flags.serve, ReadServeFlags(flags.model.ranks.layout.ranks()));
  if (absl::GetFlag(FLAGS_queued_requests) < 1) {
    return absl::InvalidArgumentError("--queued-requests must be at least 1");
  }
  flags.launcher = FindLauncher();
  const bool is_job = flags.launcher != Launcher::kNone;
  RETURN_IF_ERROR(BindRank(flags.serve, is_job));
  if (is_job) {
    const topology::Layout& layout = flags.model.ranks.layout;
    const int stage = RankFromEnvironment() / layout.tensor_ranks;
    flags.model.ranks.threads = flags.model.stage_threads[stage % layout.stages];
  }
  return flags;
}

// This process as a supervisor finds it again: its host and number.
absl::Status EnterLaunch(const Flags& flags) {
  return EnterPhase(flags, "launch",
                    absl::StrCat(" host=", comm::LocalPlace("").host, " process=", ::getpid()));
}

ExitCode RunServe(const std::vector<std::string>& /*words*/) {
  BlockEndingSignals();
  if (const absl::Status status = ApplyLogFlags(); !status.ok()) {
    return Fail(ExitCode::kUsage, status);
  }
  if (comm::IsStartedByMpi()) {
    SetLogContext(absl::StrCat("rank=", RankFromEnvironment()));
  }
  absl::StatusOr<Flags> flags = ReadFlags();
  if (!flags.ok()) {
    return Fail(ExitCode::kUsage, flags.status());
  }
  const engine::RankOptions& ranks = flags->model.ranks;
  const int ranks_here = flags->launcher == Launcher::kNone ? ranks.layout.ranks() : 1;
  if (const absl::Status status = CheckThreads(ThreadsOfProcess(ranks_here * ranks.threads));
      !status.ok()) {
    return Fail(ExitCode::kOsError, status);
  }
  FaultInjection faults(flags->serve.fault_folder, RankFromEnvironment());
  flags->faults = &faults;
  if (const absl::Status injected = EnterLaunch(*flags); !injected.ok()) {
    return Fail(ExitCodeOfReplica(injected), injected);
  }
  if (flags->launcher != Launcher::kNone) {
    return RunInJob(*flags);
  }
  const auto checkpoint = weights::Checkpoint::Open(flags->model.model);
  if (!checkpoint.ok()) {
    return Fail(ExitCodeOfFile(checkpoint.status()), checkpoint.status());
  }
  return ServeInThisProcess(**checkpoint, *flags);
}

}  // namespace

Subcommand ServeSubcommand() {
  return {.name = "serve",
          .summary = "Answer requests over gRPC, alone or as one rank of an mpirun or srun job",
          .synopsis =
              "--model FILE [--listen HOST:PORT] [--admin-listen HOST:PORT] [--tensor T --stages "
              "P] [flags]",
          .example =
              "mpirun -n 2 trireme serve --model model.gguf --tensor 2 --threads 1 --listen "
              "127.0.0.1:8080",
          .flags = ObserveFlags(ServeFlags(ReplicaFlags(
              {"model", "listen", "admin_listen", "model_id", "queued_requests", "quiet"}))),
          .words_max = 0,
          .run = RunServe};
}

}  // namespace trireme::launcher
