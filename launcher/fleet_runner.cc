#include "launcher/fleet_runner.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "launcher/child_log.h"
#include "launcher/command_line.h"
#include "launcher/fleet_children.h"
#include "launcher/fleet_mailbox.h"
#include "launcher/fleet_service.h"
#include "launcher/load_watch.h"
#include "launcher/processes.h"
#include "launcher/replica_command.h"
#include "launcher/supervisor.h"
#include "launcher/sweeper.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"

namespace trireme::launcher {
namespace {

constexpr int kBusyTickMs = 50;   // while something starts or is swept
constexpr int kIdleTickMs = 250;  // signals and operators wake at once
constexpr int kSignalBase = 128;  // of the exit codes of processes that a signal ended

sigset_t FleetSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGQUIT, SIGCHLD}) {
    sigaddset(&signals, signal);
  }
  return signals;
}

std::string HostName() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// A child as the shell has it, beside what the Supervisor knows.
struct LiveChild {
  FleetChild made;
  LogFollower log;
  pid_t process = -1;
  int port = 0;
  std::string first_error;  // of this epoch
  std::string last_line;
  std::vector<RankView> ranks;
  std::optional<LoadView> load;
  std::unique_ptr<LoadWatch> watch;
};

class Runner {
 public:
  Runner(const FleetOptions& options, RunFolder* folder)
      : options_(options),
        folder_(*folder),
        started_(SteadyClock()->Now()),
        sweeper_(folder->LogPath("sweep")),
        this_host_(HostName()) {
    std::vector<ChildSpec> specs;
    for (FleetChild& child : MakeFleetChildren(options, folder->path(), this_host_)) {
      specs.push_back(child.spec);
      const std::string log_path = folder->LogPath(child.spec.name);
      children_.push_back({.made = std::move(child), .log = LogFollower(log_path)});
    }
    supervisor_ = std::make_unique<Supervisor>(std::move(specs), folder->last_epoch(),
                                               std::random_device()(), started_);
  }

  ExitCode Run();

 private:
  absl::Time Now() const { return SteadyClock()->Now(); }
  FleetControl Control();
  void Wait(int signals);
  void TakeSignals(int signals);
  void Reap();
  void ReadLog(int index);
  void TakeLogEvent(int index, const ChildLogEvent& event);
  void TakeMail();
  void Grant(FleetMailbox::Wish wish);
  void CarryOut();
  void Start(int index, uint64_t epoch);
  void SayWhoIsLate(const SupervisorAction& action);
  void SayFleetServes();
  FleetView MakeView() const;

  const FleetOptions& options_;
  RunFolder& folder_;
  const absl::Time started_;
  Sweeper sweeper_;
  const std::string this_host_;
  FleetMailbox mailbox_;
  std::vector<LiveChild> children_;
  std::unique_ptr<Supervisor> supervisor_;
  std::optional<ExitCode> end_;
};

FleetControl Runner::Control() {
  return {.view = [this] { return mailbox_.view(); },
          .drain =
              [this](const std::string& name, bool restart, FleetControl::Done done) {
                mailbox_.PutWish({.name = name, .restart = restart, .done = std::move(done)});
              },
          .stop = [this] { mailbox_.PutWish({.stop = true}); }};
}

ExitCode Runner::Run() {
  // Orphans of a killed launcher become children of this process, which reaps them.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  mailbox_.SetView(MakeView());
  const auto server = FleetServer::Listen(FleetAdminAddress(options_.file), Control());
  if (!server.ok()) {
    return Fail(ExitCode::kPortUnavailable, server.status());
  }
  const sigset_t wanted = FleetSignals();
  const int signals = ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  while (!end_.has_value()) {
    CarryOut();
    mailbox_.SetView(MakeView());
    if (options_.on_view) {
      options_.on_view(mailbox_.view());
    }
    if (end_.has_value()) {
      break;
    }
    Wait(signals);
    TakeSignals(signals);
    for (int index = 0; index < supervisor_->size(); ++index) {
      ReadLog(index);
    }
    Reap();
    TakeMail();
    for (const SweepResult& result : sweeper_.Poll(Now())) {
      supervisor_->OnSwept(result.child, result.outcome, Now());
    }
    supervisor_->OnTick(Now());
  }
  ::close(signals);
  for (FleetMailbox::Wish& wish : mailbox_.TakeWishes()) {
    if (wish.done) {
      wish.done(absl::UnavailableError("the fleet has ended"));
    }
  }
  return *end_;
}

void Runner::Wait(int signals) {
  bool is_busy = sweeper_.is_busy();
  for (int index = 0; index < supervisor_->size(); ++index) {
    is_busy = is_busy || supervisor_->status(index).state == ChildState::kStarting;
  }
  std::array<pollfd, 2> descriptors = {
      {{.fd = signals, .events = POLLIN}, {.fd = mailbox_.descriptor(), .events = POLLIN}}};
  ::poll(descriptors.data(), descriptors.size(), is_busy ? kBusyTickMs : kIdleTickMs);
}

void Runner::TakeSignals(int signals) {
  signalfd_siginfo info = {};
  while (::read(signals, &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      continue;  // Reap looks anyway
    }
    Log(LogLevel::kInfo, absl::StrCat("signal received signal=", signal));
    supervisor_->Stop(Now());
    if (signal == SIGQUIT) {
      supervisor_->Stop(Now());
    }
  }
}

void Runner::Reap() {
  for (;;) {
    int status = 0;
    const pid_t process = ::waitpid(-1, &status, WNOHANG);
    if (process <= 0) {
      return;
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
    if (sweeper_.OnExited(process, code)) {
      continue;
    }
    for (int index = 0; index < supervisor_->size(); ++index) {
      LiveChild& child = children_[index];
      if (child.process != process) {
        continue;
      }
      ReadLog(index);  // its last words
      child.process = -1;
      child.watch.reset();
      child.load.reset();
      supervisor_->OnExited(
          index, code,
          code == 0 ? "" : (child.first_error.empty() ? child.last_line : child.first_error),
          Now());
    }
  }
}

void Runner::ReadLog(int index) {
  for (std::string& line : children_[index].log.TakeLines()) {
    if (const auto event = ParseChildLogLine(line)) {
      TakeLogEvent(index, *event);
    }
    if (!line.empty()) {
      children_[index].last_line = std::move(line);
    }
  }
}

void Runner::TakeLogEvent(int index, const ChildLogEvent& event) {
  LiveChild& child = children_[index];
  const bool is_rank = event.rank >= 0 && event.rank < static_cast<int>(child.ranks.size());
  switch (event.kind) {
    case ChildLogEvent::Kind::kPhase:
      if (is_rank) {
        RankView& rank = child.ranks[event.rank];
        rank.phase = event.phase;
        if (!event.host.empty()) {
          rank.host = event.host;
          rank.process = event.process;
        }
      }
      supervisor_->OnPhase(index, event.rank, event.phase, Now());
      break;
    case ChildLogEvent::Kind::kLoading:
      if (is_rank) {
        child.ranks[event.rank].loaded_percent = event.percent;
        child.ranks[event.rank].weight_bytes = event.bytes;
      }
      break;
    case ChildLogEvent::Kind::kServing: {
      child.port = event.port;
      supervisor_->OnServing(index, Now());
      const std::string address = child.made.load_address.empty()
                                      ? ReachableAddress(child.made.listen, event.port)
                                      : child.made.load_address;
      child.watch = LoadWatch::Start(address, [this, index](uint64_t epoch, const LoadView& load) {
        mailbox_.PutLoad({.child = index, .epoch = epoch, .load = load});
      });
      break;
    }
    case ChildLogEvent::Kind::kLost:
    case ChildLogEvent::Kind::kError:
      if (child.first_error.empty()) {
        child.first_error = event.text;
      }
      if (event.kind == ChildLogEvent::Kind::kLost) {
        supervisor_->OnLost(index, event.text, Now());
      }
      break;
  }
}

void Runner::TakeMail() {
  for (FleetMailbox::LoadMail& mail : mailbox_.TakeLoads()) {
    const ChildStatus& status = supervisor_->status(mail.child);
    // A revived process of an older epoch may still report; that is no life of this one.
    if (mail.epoch == status.epoch) {
      supervisor_->OnReport(mail.child, Now());
      children_[mail.child].load = mail.load;
    }
  }
  for (FleetMailbox::Wish& wish : mailbox_.TakeWishes()) {
    Grant(std::move(wish));
  }
}

void Runner::Grant(FleetMailbox::Wish wish) {
  if (wish.stop) {
    Log(LogLevel::kInfo, "stop asked for");
    supervisor_->Stop(Now());
    return;
  }
  if (wish.name.empty() && wish.restart) {
    wish.done(supervisor_->RestartAll(Now()));
    return;
  }
  std::vector<std::string> names;
  for (int index = 0; index < supervisor_->size(); ++index) {
    names.push_back(supervisor_->spec(index).name);
    if (names.back() == wish.name) {
      wish.done(supervisor_->Drain(index, wish.restart, Now()));
      return;
    }
  }
  wish.done(absl::NotFoundError(absl::StrFormat("the fleet has no \"%s\"; it has %s", wish.name,
                                                absl::StrJoin(names, ", "))));
}

void Runner::Start(int index, uint64_t epoch) {
  LiveChild& child = children_[index];
  child.first_error.clear();
  child.last_line.clear();
  child.port = 0;
  child.ranks.assign(supervisor_->spec(index).ranks, RankView());
  absl::Status failure = folder_.StoreEpoch(epoch);
  if (failure.ok()) {
    // A rank 0 that was killed left its socket behind.
    ::unlink(AdminAddress(folder_.path(), child.made.spec.name).substr(5).c_str());
    const std::vector<std::string> words = child.made.words(epoch);
    Log(LogLevel::kDebug, absl::StrCat("runs ", ShellText(words)));
    const absl::StatusOr<pid_t> process =
        StartProcess({.words = words,
                      .log_path = folder_.LogPath(child.made.spec.name),
                      .death_signal = child.made.death_signal});
    if (process.ok()) {
      child.process = *process;
      return;
    }
    failure = process.status();
  }
  supervisor_->OnExited(index, static_cast<int>(ExitCode::kOsError), std::string(failure.message()),
                        Now());
}

void Runner::CarryOut() {
  for (std::vector<SupervisorAction> actions = supervisor_->TakeActions(); !actions.empty();
       actions = supervisor_->TakeActions()) {
    for (const SupervisorAction& action : actions) {
      switch (action.kind) {
        case SupervisorAction::Kind::kStart:
          Start(action.child, action.epoch);
          break;
        case SupervisorAction::Kind::kSignal:
          if (children_[action.child].process > 0) {
            ::kill(children_[action.child].process, action.signal);
          }
          break;
        case SupervisorAction::Kind::kSweep:
          sweeper_.Begin(
              action.child,
              absl::StrCat(folder_.path(), ":", children_[action.child].made.spec.name, ":"),
              children_[action.child].made.remote_hosts, Now());
          break;
        case SupervisorAction::Kind::kLate:
          SayWhoIsLate(action);
          break;
        case SupervisorAction::Kind::kReport:
          Log(action.level, action.text);
          break;
        case SupervisorAction::Kind::kFleetServing:
          SayFleetServes();
          break;
        case SupervisorAction::Kind::kFinish:
          end_ = action.code;
          break;
      }
    }
  }
}

// Processes that are stopped are the culprits; without one, all that are late may be.
void Runner::SayWhoIsLate(const SupervisorAction& action) {
  const LiveChild& child = children_[action.child];
  std::vector<std::string> stopped;
  std::vector<std::string> late;
  for (const int index : action.ranks) {
    const RankView& rank = child.ranks[index];
    const std::string place =
        rank.host.empty()
            ? absl::StrFormat("rank=%d host=%s has not started", index,
                              child.made.rank_hosts[index])
            : absl::StrFormat("rank=%d host=%s process=%d", index, rank.host, rank.process);
    late.push_back(place);
    if (rank.process > 0 && ProcessState(static_cast<pid_t>(rank.process)) == 'T') {
      stopped.push_back(absl::StrCat(place, " is stopped"));
    }
  }
  if (ProcessState(child.process) == 'T') {
    stopped.push_back(absl::StrFormat("its launcher process=%d is stopped", child.process));
  }
  Log(LogLevel::kError,
      absl::StrFormat("replica=%s start phase=%s is late: %s", child.made.spec.name, action.text,
                      absl::StrJoin(stopped.empty() ? late : stopped, "; ")));
}

void Runner::SayFleetServes() {
  int replicas = 0;
  int serving = 0;
  std::string addresses;
  int port = 0;
  for (int index = 0; index < supervisor_->size(); ++index) {
    const bool is_replica = supervisor_->spec(index).kind == ChildKind::kReplica;
    const bool serves = supervisor_->status(index).state == ChildState::kServing;
    replicas += is_replica ? 1 : 0;
    serving += is_replica && serves ? 1 : 0;
    // Clients talk to balancers, or to replicas where there is none.
    if (serves && is_replica == !options_.file.balancer.has_value()) {
      port = port == 0 ? children_[index].port : port;
      absl::StrAppend(&addresses, addresses.empty() ? "" : ",",
                      ReachableAddress(children_[index].made.listen, children_[index].port));
    }
  }
  Log(LogLevel::kInfo, absl::StrFormat("fleet serving port=%d at=%s replicas=%d of %d", port,
                                       addresses, serving, replicas));
}

FleetView Runner::MakeView() const {
  const absl::Time now = Now();
  FleetView view = {.name = options_.file.name,
                    .uptime = now - started_,
                    .is_stopping = supervisor_->is_stopping()};
  for (int index = 0; index < supervisor_->size(); ++index) {
    const LiveChild& child = children_[index];
    const ChildStatus& status = supervisor_->status(index);
    const ChildSpec& spec = supervisor_->spec(index);
    view.children.push_back(
        {.name = spec.name,
         .kind = spec.kind == ChildKind::kReplica ? "replica" : "balancer",
         .state = std::string(NameOf(status.state)),
         .phase = spec.phases[status.phase].name,
         .epoch = status.epoch,
         .restarts = status.restarts,
         .exit_code = status.exit_code,
         .reason = status.reason,
         .address = ReachableAddress(child.made.listen, child.port),
         .in_state = now - status.since,
         .ranks = child.ranks,
         .load = status.state == ChildState::kServing || status.state == ChildState::kDraining
                     ? child.load
                     : std::nullopt});
  }
  return view;
}

}  // namespace

void BlockFleetSignals() {
  const sigset_t signals = FleetSignals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

ExitCode RunFleet(const FleetOptions& options, RunFolder* folder) {
  return Runner(options, folder).Run();
}

}  // namespace trireme::launcher
