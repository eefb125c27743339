#include "launcher/serving.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "launcher/exit_codes.h"
#include "launcher/generation.h"
#include "launcher/model_facade.h"
#include "launcher/observe_options.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/log.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/mpi_communicator.h"
#include "runtime/serve/server.h"

ABSL_FLAG(std::string, listen, "127.0.0.1:8080",
          "address of the service, as in --listen 0.0.0.0:8080; port 0: a free one");
ABSL_FLAG(std::string, admin_listen, "",
          "address of the admin service with reflection, HOST:PORT or unix:PATH; empty: none");

namespace trireme::launcher {
namespace {

// scancel kills what is left after KillWait, 30 s unless configured otherwise.
constexpr absl::Duration kSlurmDrainDeadline = absl::Seconds(20);

sigset_t EndingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  sigaddset(&signals, SIGUSR1);
  return signals;
}

absl::Status LauncherLost() {
  return WithReason(absl::UnavailableError("the launcher of this replica (mpirun or srun) ended; "
                                           "the replica ends with it"),
                    kReasonReplicaLost);
}

}  // namespace

void EndOfService::Set(Reason reason) {
  MutexLock lock(&mutex_);
  if (!is_set_) {
    reason_ = std::move(reason);
    is_set_ = true;
    set_.SignalAll();
  }
}

EndOfService::Reason EndOfService::Wait() {
  MutexLock lock(&mutex_);
  while (!is_set_) {
    set_.Wait(&mutex_);
  }
  return reason_;
}

Launcher FindLauncher() {
  if (!comm::IsStartedByMpi()) {
    return Launcher::kNone;
  }
  // mpirun inside a Slurm allocation starts its daemons as steps, so both variables are there.
  return std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr && std::getenv("SLURM_STEP_ID") != nullptr
             ? Launcher::kSlurm
             : Launcher::kMpirun;
}

void BlockEndingSignals() {
  const sigset_t signals = EndingSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void WatchEndingSignals(serve::Server* server, EndOfService* end, Launcher launcher,
                        absl::Duration drain_deadline, std::function<void()> on_hangup) {
  if (launcher != Launcher::kNone) {
    ::prctl(PR_SET_PDEATHSIG, SIGHUP);
  }
  std::thread([server, end, launcher, drain_deadline, on_hangup = std::move(on_hangup)] {
    const sigset_t signals = EndingSignals();
    bool is_draining = false;
    bool was_terminated = false;
    for (;;) {
      int signal = 0;
      if (sigwait(&signals, &signal) != 0) {
        continue;
      }
      Log(LogLevel::kInfo, absl::StrCat("signal received signal=", signal));
      if (signal == SIGHUP && on_hangup) {
        on_hangup();
        continue;
      }
      if (signal == SIGHUP && launcher != Launcher::kNone) {
        end->Set({.kind = EndOfService::Kind::kLost, .status = LauncherLost()});
      } else if (signal != SIGUSR1 && (launcher == Launcher::kMpirun || was_terminated ||
                                       (is_draining && launcher == Launcher::kNone))) {
        end->Set({.kind = EndOfService::Kind::kTerminated, .status = absl::OkStatus()});
      } else if (!is_draining || launcher != Launcher::kSlurm) {
        is_draining = true;
        server->Drain(signal != SIGUSR1 && launcher == Launcher::kSlurm
                          ? std::min(drain_deadline, kSlurmDrainDeadline)
                          : drain_deadline);
      }  // else: scancel tells the ranks and their supervisor, which tells them again: one drain
      was_terminated = was_terminated || signal != SIGUSR1;
    }
  }).detach();
}

void StatusBoard::SetPhase(absl::string_view detail) {
  MutexLock lock(&mutex_);
  phase_detail_ = std::string(detail);
}

void StatusBoard::Show(const engine::Replica* replica) {
  MutexLock lock(&mutex_);
  replica_ = replica;
}

serve::StatusSnapshot StatusBoard::Snapshot() const {
  MutexLock lock(&mutex_);
  serve::StatusSnapshot snapshot;
  snapshot.version = TRIREME_VERSION;
  snapshot.phase_detail = phase_detail_;
  if (replica_ == nullptr) {
    return snapshot;
  }
  for (const engine::RankStatus& rank : replica_->RankStatuses()) {
    snapshot.ranks.push_back({.rank = rank.rank,
                              .host = rank.host,
                              .process_id = rank.process_id,
                              .step = rank.step,
                              .heartbeat_age = rank.heartbeat_age,
                              .phase = std::string(engine::RankPhaseName(rank.phase)),
                              .stage = rank.stage,
                              .tensor_rank = rank.tensor_rank});
  }
  for (model::ExpertLayerLoad& load : replica_->ExpertLoads()) {
    const double busiest_ratio = model::BusiestRatio(load.tokens);
    snapshot.expert_layers.push_back(
        {.layer = load.layer, .tokens = std::move(load.tokens), .busiest_ratio = busiest_ratio});
  }
  return snapshot;
}

absl::StatusOr<std::unique_ptr<serve::Server>> Listen(serve::ServerOptions options) {
  options.listen = absl::GetFlag(FLAGS_listen);
  options.admin_listen = absl::GetFlag(FLAGS_admin_listen);
  Metrics* const metrics = options.door.metrics;
  ASSIGN_OR_RETURN(std::unique_ptr<serve::Server> server,
                   serve::Server::Create(std::move(options)));
  if (metrics != nullptr) {
    RETURN_IF_ERROR(ListenForScrapes(metrics));
  }
  return server;
}

ExitCode ExitCodeOfListen(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) ? ExitCode::kPortUnavailable : ExitCode::kUsage;
}

serve::ReplicaFacade FacadeOf(engine::Replica& replica, const engine::RankOptions& options,
                              const std::string& model_id, int64_t queued_requests_max) {
  const engine::ReplicaInfo& info = replica.info();
  serve::ReplicaFacade facade = FacadeOfModel({.id = model_id,
                                               .spec = &info.model,
                                               .text = &replica.text(),
                                               .context = info.limits.context,
                                               .fingerprint = info.fingerprint},
                                              options);
  facade.queued_requests_max = queued_requests_max;
  facade.controller = &replica.controller();
  return facade;
}

weights::LoadProgress LogProgress() {
  auto last_percent = std::make_shared<int64_t>(-1);
  return [last_percent](int64_t done_bytes, int64_t total_bytes) {
    const int64_t percent = total_bytes <= 0 ? 100 : done_bytes * 100 / total_bytes;
    if (percent / 10 != *last_percent / 10 || *last_percent < 0) {
      *last_percent = percent;
      Log(LogLevel::kInfo, absl::StrCat("loading percent=", percent, " bytes=", total_bytes));
    }
  };
}

absl::Status WarmUp(engine::Replica& replica) {
  schedule::Request request;
  const text::Tokenizer* const tokenizer = replica.text().tokenizer.get();
  request.prompt = {tokenizer == nullptr ? 0 : tokenizer->bos_id().value_or(0)};
  request.stopping.max_tokens = 1;
  request.stopping.ignore_eos = true;
  request.want_text = false;
  const std::vector<Generation> generations =
      Generate(replica.controller(), {std::move(request)}, nullptr);
  if (!generations[0].ending.status.ok()) {
    return generations[0].ending.status;
  }
  return generations[0].token_ids.size() == 1 ? absl::OkStatus()
                                              : absl::InternalError("the warm-up gave no token");
}

}  // namespace trireme::launcher
