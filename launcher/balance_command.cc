#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
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
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "launcher/balancer_reload.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/model_facade.h"
#include "launcher/observe_options.h"
#include "launcher/replica_options.h"
#include "launcher/serving.h"
#include "runtime/balance/balancer_metrics.h"
#include "runtime/balance/forwarding_controller.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/log.h"
#include "runtime/base/metrics.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/replica.h"
#include "runtime/serve/server.h"
#include "runtime/weights/checkpoint.h"

ABSL_FLAG(std::string, replicas, "",
          "the replicas by name, as in --replicas r1=127.0.0.1:7001,r2=127.0.0.1:7002");
ABSL_FLAG(double, bounded_load, 1.25,
          "load of a replica over the mean that prompts with its prefix may cause, as in "
          "--bounded-load 1.25");
ABSL_FLAG(double, explore, 0.01, "share of requests that try any replica, as in --explore 0.01");
ABSL_FLAG(absl::Duration, stale, absl::Seconds(1),
          "age at which a load report is not believed any more, as in --stale 1s");
ABSL_FLAG(double, retry_budget, 0.1,
          "retries as a share of the requests of 10 s, as in --retry-budget 0.1");
ABSL_FLAG(int32_t, attempts, 3,
          "replicas that a request is tried on before its first token, as in --attempts 3");
ABSL_FLAG(int32_t, resumes, 3,
          "times that a stream may go on elsewhere after its first token, as in --resumes 3");
ABSL_FLAG(int32_t, queue, 1024,
          "requests that may wait at the balancer; more are refused, as in --queue 100");
ABSL_FLAG(absl::Duration, resume_grace, absl::Seconds(10),
          "how long a stream outlives its client's connection, as in --resume-grace 10s");
ABSL_FLAG(std::string, topology, "",
          "topology file whose balancer settings SIGHUP and Admin.Reload put in force, as in "
          "--topology fleet.yaml; they stand above flags from the start if the file can be used");
ABSL_DECLARE_FLAG(std::string, model);
ABSL_DECLARE_FLAG(uint64_t, epoch);

namespace trireme::launcher {
namespace {

constexpr absl::Duration kDrainDeadline = absl::Seconds(120);

// How long streams that were ended may take to leave before the process does.
constexpr absl::Duration kFarewell = absl::Milliseconds(500);

absl::Status CheckFlag(absl::string_view flag, double value, double least, double most) {
  if (value >= least && value <= most) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("--%s is %g; it must be between %g and %g", flag, value, least, most));
}

absl::StatusOr<std::vector<balance::ReplicaAddress>> ReadReplicas() {
  std::vector<balance::ReplicaAddress> replicas;
  for (const absl::string_view part :
       absl::StrSplit(absl::GetFlag(FLAGS_replicas), ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.first.empty() || pair.second.find(':') == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("--replicas has \"", part, "\"; wanted NAME=HOST:PORT"));
    }
    for (const balance::ReplicaAddress& other : replicas) {
      if (other.name == pair.first) {
        return absl::InvalidArgumentError(
            absl::StrCat("--replicas names \"", pair.first, "\" twice; names must differ"));
      }
    }
    replicas.push_back({std::string(pair.first), std::string(pair.second)});
  }
  if (replicas.empty()) {
    return absl::InvalidArgumentError(
        "--replicas is missing: name them, as in --replicas r1=127.0.0.1:7001");
  }
  return replicas;
}

absl::StatusOr<balance::ForwardingOptions> ReadOptions() {
  balance::ForwardingOptions options;
  ASSIGN_OR_RETURN(options.replicas, ReadReplicas());
  balance::BalancerOptions& core = options.core;
  core.pick.bounded_load = absl::GetFlag(FLAGS_bounded_load);
  RETURN_IF_ERROR(CheckFlag("bounded-load", core.pick.bounded_load, 1, 100));
  core.pick.explore = absl::GetFlag(FLAGS_explore);
  RETURN_IF_ERROR(CheckFlag("explore", core.pick.explore, 0, 1));
  core.health.stale_after = absl::GetFlag(FLAGS_stale);
  // Reports come each half second, and after three seconds without one a replica counts as lost.
  RETURN_IF_ERROR(
      CheckFlag("stale (in seconds)", absl::ToDoubleSeconds(core.health.stale_after), 0.5, 3));
  core.retry.share = absl::GetFlag(FLAGS_retry_budget);
  RETURN_IF_ERROR(CheckFlag("retry-budget", core.retry.share, 0, 1));
  RETURN_IF_ERROR(CheckFlag("attempts", absl::GetFlag(FLAGS_attempts), 1, 100));
  core.retry.retries_per_request = absl::GetFlag(FLAGS_attempts) - 1;
  core.retry.resumes_per_request = absl::GetFlag(FLAGS_resumes);
  RETURN_IF_ERROR(CheckFlag("resumes", core.retry.resumes_per_request, 0, 100));
  core.admission.queued_requests_max = absl::GetFlag(FLAGS_queue);
  RETURN_IF_ERROR(CheckFlag("queue", absl::GetFlag(FLAGS_queue), 1, 1'000'000));
  std::random_device entropy;
  core.random_seed = (uint64_t{entropy()} << 32) | entropy();
  options.lease = absl::StrFormat("%08x%08x", entropy(), entropy());
  return options;
}

absl::StatusOr<serve::ServerOptions> ReadServerOptions() {
  serve::ServerOptions options;
  options.door.resume_grace = absl::GetFlag(FLAGS_resume_grace);
  RETURN_IF_ERROR(CheckFlag("resume-grace (in seconds)",
                            absl::ToDoubleSeconds(options.door.resume_grace), 0, 3600));
  return options;
}

// Null without --topology. `apply` is set later, when there is a controller.
std::unique_ptr<BalancerReload> MakeReload(const balance::ForwardingOptions& options,
                                           absl::Duration resume_grace,
                                           BalancerReload::Apply apply) {
  const std::string path = absl::GetFlag(FLAGS_topology);
  return path.empty()
             ? nullptr
             : std::make_unique<BalancerReload>(
                   path,
                   BalancerFixture{.replicas = options.replicas, .resume_grace = resume_grace},
                   options.core, std::move(apply));
}

EndOfService::Reason Run(serve::Server& server, EndOfService& end) {
  std::thread drained([&server, &end] {
    server.Wait();
    end.Set({.kind = EndOfService::Kind::kDrained, .status = absl::OkStatus()});
  });
  const EndOfService::Reason reason = end.Wait();
  if (reason.kind != EndOfService::Kind::kDrained) {
    server.EndStreams(WithReason(absl::UnavailableError("the balancer ends"), kReasonDraining));
  }
  server.WaitForStreams(kFarewell);
  server.Shutdown();
  drained.join();
  return reason;
}

ExitCode RunBalance(const std::vector<std::string>& /*words*/) {
  BlockEndingSignals();
  if (const absl::Status status = ApplyLogFlags(); !status.ok()) {
    return Fail(ExitCode::kUsage, status);
  }
  const absl::StatusOr<ReplicaFlagValues> flags = ReadReplicaFlags();
  const absl::StatusOr<balance::ForwardingOptions> options = ReadOptions();
  absl::StatusOr<serve::ServerOptions> server_options = ReadServerOptions();
  for (const absl::Status& status : {flags.status(), options.status(), server_options.status()}) {
    if (!status.ok()) {
      return Fail(ExitCode::kUsage, status);
    }
  }
  const auto checkpoint = weights::Checkpoint::Open(flags->model);
  if (!checkpoint.ok()) {
    return Fail(ExitCodeOfFile(checkpoint.status()), checkpoint.status());
  }
  const auto text = engine::ReadReplicaText(**checkpoint);
  if (!text.ok()) {
    return Fail(ExitCodeOfFile(text.status()), text.status());
  }
  Metrics metrics;
  server_options->door.metrics = &metrics;
  const std::unique_ptr<balance::ForwardingController> controller =
      balance::ForwardingController::Create(*options, SteadyClock());
  const std::unique_ptr<BalancerReload> reload = MakeReload(
      *options, server_options->door.resume_grace,
      [&controller](const balance::BalancerOptions& core) { controller->Reconfigure(core); });
  std::function<void()> on_hangup;
  if (reload != nullptr) {
    (void)reload->Reload(
        /*dry_run=*/false);  // a file that cannot be used leaves the flags in force
    on_hangup = [&reload] { (void)reload->Reload(/*dry_run=*/false); };
    server_options->reload = [&reload](bool dry_run) -> absl::StatusOr<serve::ReloadOutcome> {
      ASSIGN_OR_RETURN(BalancerReload::Outcome outcome, reload->Reload(dry_run));
      return serve::ReloadOutcome{.changes = std::move(outcome.changes),
                                  .version = outcome.version};
    };
  }
  const auto server = Listen(*std::move(server_options));
  if (!server.ok()) {
    return Fail(ExitCodeOfListen(server.status()), server.status());
  }
  EndOfService end;
  WatchEndingSignals(server->get(), &end, Launcher::kNone, kDrainDeadline, std::move(on_hangup));
  balance::BalancerMetrics balancer_metrics(&metrics);
  const ScrapeHook hook = metrics.OnScrape([&balancer_metrics, &controller] {
    balancer_metrics.Set(controller->counts(), controller->Replicas());
  });
  const spec::ModelSpec& spec = (*checkpoint)->model_spec();
  const int64_t context =
      flags->ranks.limits.context == 0 ? spec.context : flags->ranks.limits.context;
  serve::ReplicaFacade facade = FacadeOfModel({.id = ModelId(flags->model),
                                               .spec = &spec,
                                               .text = &*text,
                                               .context = context,
                                               .fingerprint = (*checkpoint)->FingerprintValue()},
                                              flags->ranks);
  facade.controller = controller.get();
  facade.queued_requests_max = options->core.admission.queued_requests_max;
  facade.model.is_balanced = true;
  facade.epoch = absl::GetFlag(FLAGS_epoch);
  (*server)->Open(std::move(facade));
  Log(LogLevel::kInfo, absl::StrCat("serving port=", (*server)->port(), " replicas=",
                                    options->replicas.size(), " lease=", options->lease));
  Run(**server, end);
  return ExitCode::kOk;
}

}  // namespace

Subcommand BalanceSubcommand() {
  return {.name = "balance",
          .summary = "Spread requests over replicas, and keep their streams alive when one dies",
          .synopsis = "--replicas NAME=HOST:PORT,... --model FILE [--listen HOST:PORT] [flags]",
          .example =
              "trireme balance --model model.gguf --listen 127.0.0.1:8080 --replicas "
              "r1=127.0.0.1:7001,r2=127.0.0.1:7002",
          .flags = ObserveFlags({"replicas", "model", "listen", "admin_listen", "model_id",
                                 "context_tokens", "activations", "kv_cache", "bounded_load",
                                 "explore", "stale", "retry_budget", "attempts", "resumes", "queue",
                                 "resume_grace", "epoch", "topology"}),
          .words_max = 0,
          .run = RunBalance};
}

}  // namespace trireme::launcher
