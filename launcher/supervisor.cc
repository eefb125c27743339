#include "launcher/supervisor.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace trireme::launcher {
namespace {

using Kind = SupervisorAction::Kind;

// Ranks leave within half a second of a loss, mpirun two seconds later.
constexpr absl::Duration kLeaveLimit = absl::Seconds(5);
constexpr absl::Duration kSweepAgain = absl::Seconds(2);
// A drain ends by itself at its deadline; this much later something hangs.
constexpr absl::Duration kDrainMargin = absl::Seconds(10);
// The caller ticks several times a second; a longer gap means that it did not run.
constexpr absl::Duration kTickGap = absl::Seconds(1);

bool IsDown(ChildState state) {
  return state == ChildState::kStopped || state == ChildState::kFailed;
}

absl::string_view NameOf(ChildKind kind) {
  return kind == ChildKind::kReplica ? "replica" : "balancer";
}

}  // namespace

absl::string_view NameOf(ChildState state) {
  switch (state) {
    case ChildState::kSweeping:
      return "sweeping";
    case ChildState::kWaiting:
      return "waiting";
    case ChildState::kStarting:
      return "starting";
    case ChildState::kServing:
      return "serving";
    case ChildState::kDraining:
      return "draining";
    case ChildState::kEnding:
      return "ending";
    case ChildState::kStopped:
      return "stopped";
    case ChildState::kFailed:
      return "failed";
  }
  return "?";
}

Supervisor::Supervisor(std::vector<ChildSpec> children, uint64_t last_epoch, uint64_t seed,
                       absl::Time now)
    : epoch_(last_epoch), random_(seed), last_tick_(now) {
  for (ChildSpec& spec : children) {
    children_.push_back({.spec = std::move(spec)});
    children_.back().history = RestartHistory(children_.back().spec.restart);
  }
  for (int index = 0; index < size(); ++index) {
    Sweep(index, now);
  }
}

void Supervisor::SetState(int index, ChildState state, absl::Time deadline, absl::Time now) {
  Child& child = children_[index];
  child.status.state = state;
  child.status.since = now;
  child.deadline = deadline;
}

void Supervisor::Report(int index, LogLevel level, absl::string_view text) {
  const ChildSpec& spec = children_[index].spec;
  actions_.push_back({.kind = Kind::kReport,
                      .child = index,
                      .level = level,
                      .text = absl::StrCat(NameOf(spec.kind), "=", spec.name, " ", text)});
}

void Supervisor::Start(int index, absl::Time now) {
  Child& child = children_[index];
  child.wants_restart = false;
  child.killed_code.reset();
  child.killed_reason.clear();
  child.has_process = true;
  child.status.restarts += child.status.epoch > 0 ? 1 : 0;
  child.status.epoch = ++epoch_;
  child.status.phase = 0;
  child.status.rank_phases.assign(child.spec.ranks, -1);
  SetState(index, ChildState::kStarting, now + child.spec.phases[0].limit, now);
  Report(index, LogLevel::kInfo,
         absl::StrFormat("starts epoch=%d phase=%s", epoch_, child.spec.phases[0].name));
  actions_.push_back({.kind = Kind::kStart, .child = index, .epoch = epoch_});
}

void Supervisor::Sweep(int index, absl::Time now) {
  SetState(index, ChildState::kSweeping, absl::InfiniteFuture(), now);
  children_[index].is_sweeping = true;
  actions_.push_back({.kind = Kind::kSweep, .child = index});
}

void Supervisor::Signal(int index, int signal) {
  actions_.push_back({.kind = Kind::kSignal, .child = index, .signal = signal});
}

void Supervisor::Kill(int index, std::optional<int> code, const std::string& reason,
                      absl::Time now) {
  Child& child = children_[index];
  Report(index, LogLevel::kError, absl::StrCat("is killed reason=\"", reason, "\""));
  if (!child.killed_code.has_value() && code.has_value()) {
    child.killed_code = code;
    child.killed_reason = reason;
  }
  SetState(index, ChildState::kEnding, now + kLeaveLimit, now);
  actions_.push_back({.kind = Kind::kSweep, .child = index});
}

void Supervisor::Terminate(int index, absl::Time now) {
  SetState(index, ChildState::kEnding, now + kLeaveLimit, now);
  Signal(index, SIGTERM);
}

void Supervisor::OnSwept(int index, const absl::Status& outcome, absl::Time now) {
  Child& child = children_[index];
  if (child.status.state != ChildState::kSweeping || !child.is_sweeping) {
    return;
  }
  child.is_sweeping = false;
  if (outcome.ok() || is_stopping() || child.wants_stop) {
    Settle(index, now);
  } else {
    // Two epochs must not live side by side, so it waits for the node to come back.
    if (child.status.reason != outcome.message()) {
      child.status.reason = std::string(outcome.message());
      Report(index, LogLevel::kWarning,
             absl::StrCat("cannot start again yet reason=\"", outcome.message(), "\""));
    }
    child.deadline = now + kSweepAgain;
  }
  Advance(now);
}

void Supervisor::OnExited(int index, int code, const std::string& reason, absl::Time now) {
  Child& child = children_[index];
  if (!child.has_process) {
    return;
  }
  child.has_process = false;
  child.status.exit_code = child.killed_code.value_or(code);
  child.status.reason = child.killed_code.has_value() ? child.killed_reason : reason;
  const bool is_wanted = child.wants_stop || child.wants_restart || is_stopping();
  Report(index, is_wanted ? LogLevel::kInfo : LogLevel::kWarning,
         absl::StrFormat("ended epoch=%d code=%d%s", child.status.epoch, *child.status.exit_code,
                         child.status.reason.empty()
                             ? ""
                             : absl::StrCat(" reason=\"", child.status.reason, "\"")));
  Sweep(index, now);
}

void Supervisor::Settle(int index, absl::Time now) {
  Child& child = children_[index];
  if (child.wants_stop || is_stopping()) {
    child.wants_stop = false;
    SetState(index, ChildState::kStopped, absl::InfiniteFuture(), now);
    return;
  }
  if (child.wants_restart || child.status.epoch == 0) {
    Start(index, now);
    return;
  }
  const int code = child.status.exit_code.value_or(0);
  if (code == 0) {  // somebody drained it by hand: that is no failure, and no wish to stay down
    child.status.next_start = now + child.spec.restart.backoff_min;
    SetState(index, ChildState::kWaiting, child.status.next_start, now);
    return;
  }
  SettleFailure(index, code, now);
}

void Supervisor::SettleFailure(int index, int code, absl::Time now) {
  Child& child = children_[index];
  const double uniform = std::uniform_real_distribution<double>(0, 1)(random_);
  const RestartDecision decision = child.history.OnFailure(code, uniform, now);
  if (!decision.backoff.has_value()) {
    SetState(index, ChildState::kFailed, absl::InfiniteFuture(), now);
    Report(index, LogLevel::kError, absl::StrCat("failed ", decision.why));
    return;
  }
  child.status.next_start = now + *decision.backoff;
  SetState(index, ChildState::kWaiting, child.status.next_start, now);
  Report(index, LogLevel::kInfo,
         absl::StrFormat("starts again in %.1f s", absl::ToDoubleSeconds(*decision.backoff)));
}

void Supervisor::OnPhase(int index, int rank, absl::string_view phase, absl::Time now) {
  Child& child = children_[index];
  ChildStatus& status = child.status;
  const auto& phases = child.spec.phases;
  const auto found = std::find_if(phases.begin(), phases.end(),
                                  [phase](const StartPhase& known) { return known.name == phase; });
  if (status.state != ChildState::kStarting || found == phases.end() || rank < 0 ||
      rank >= child.spec.ranks) {
    return;
  }
  const int reached = static_cast<int>(found - phases.begin());
  status.rank_phases[rank] = std::max(status.rank_phases[rank], reached);
  const int lowest = *std::min_element(status.rank_phases.begin(), status.rank_phases.end());
  if (lowest > status.phase) {
    status.phase = lowest;
    child.deadline = now + phases[lowest].limit;
    Report(index, LogLevel::kInfo,
           absl::StrFormat("start epoch=%d phase=%s", status.epoch, phases[lowest].name));
  }
}

void Supervisor::OnServing(int index, absl::Time now) {
  Child& child = children_[index];
  if (child.status.state != ChildState::kStarting) {
    return;
  }
  const absl::Duration took = now - child.status.since;
  SetState(index, ChildState::kServing, absl::InfiniteFuture(), now);
  child.last_report = now;
  Report(index, LogLevel::kInfo,
         absl::StrFormat("serves epoch=%d after %.1f s", child.status.epoch,
                         absl::ToDoubleSeconds(took)));
  AnnounceFleet();
  Advance(now);
}

void Supervisor::OnReport(int index, absl::Time now) { children_[index].last_report = now; }

void Supervisor::OnLost(int index, const std::string& reason, absl::Time now) {
  Child& child = children_[index];
  const ChildState state = child.status.state;
  if (state != ChildState::kStarting && state != ChildState::kServing &&
      state != ChildState::kDraining) {
    return;
  }
  Report(index, LogLevel::kError, absl::StrCat("lost reason=\"", reason, "\""));
  SetState(index, ChildState::kEnding, now + kLeaveLimit, now);
}

void Supervisor::DrainChild(int index, bool restart, absl::Time now) {
  Child& child = children_[index];
  child.wants_stop = !restart;
  child.wants_restart = restart;
  switch (child.status.state) {
    case ChildState::kServing:
      SetState(index, ChildState::kDraining,
               now + child.spec.drain.announce + child.spec.drain.deadline + kDrainMargin, now);
      Signal(index, SIGUSR1);
      break;
    case ChildState::kStarting:
      Terminate(index, now);
      break;
    case ChildState::kWaiting:
      Settle(index, now);
      break;
    case ChildState::kStopped:
    case ChildState::kFailed:
      child.wants_stop = false;
      if (restart) {
        child.history = RestartHistory(child.spec.restart);
        Sweep(index, now);
      }
      break;
    case ChildState::kSweeping:
    case ChildState::kDraining:
    case ChildState::kEnding:
      break;  // the wish is enough
  }
}

absl::Status Supervisor::Drain(int index, bool restart, absl::Time now) {
  if (is_stopping()) {
    return absl::FailedPreconditionError("the fleet is stopping");
  }
  Report(index, LogLevel::kInfo, restart ? "restart asked for" : "drain asked for");
  DrainChild(index, restart, now);
  Advance(now);
  return absl::OkStatus();
}

absl::Status Supervisor::RestartAll(absl::Time now) {
  if (is_stopping()) {
    return absl::FailedPreconditionError("the fleet is stopping");
  }
  if (rolling_child_ >= 0 || !rolling_.empty()) {
    return absl::FailedPreconditionError("a rolling restart is under way");
  }
  for (const ChildKind kind : {ChildKind::kReplica, ChildKind::kBalancer}) {
    for (int index = 0; index < size(); ++index) {
      if (children_[index].spec.kind == kind) {
        rolling_.push_back(index);
      }
    }
  }
  Advance(now);
  return absl::OkStatus();
}

void Supervisor::Stop(absl::Time now) {
  ++stops_;
  rolling_.clear();
  actions_.push_back({.kind = Kind::kReport,
                      .text = stops_ == 1   ? "fleet drains"
                              : stops_ == 2 ? "fleet ends now"
                                            : "fleet is killed"});
  for (int index = 0; index < size(); ++index) {
    Child& child = children_[index];
    if (child.status.state == ChildState::kWaiting) {
      Settle(index, now);
    } else if (child.has_process && stops_ == 2) {
      Terminate(index, now);
    } else if (child.has_process && stops_ > 2) {
      Kill(index, std::nullopt, "asked for", now);
    }
  }
  Advance(now);
}

void Supervisor::OnTick(absl::Time now) {
  const bool did_not_run = now - last_tick_ > kTickGap;
  last_tick_ = now;
  for (int index = 0; index < size(); ++index) {
    Child& child = children_[index];
    if (did_not_run) {
      child.last_report = now;
    }
    if (child.status.state == ChildState::kServing &&
        now - child.last_report > child.spec.silence) {
      Kill(index, static_cast<int>(ExitCode::kPeerLost),
           absl::StrFormat("no sign of life for %s: stopped, hanging or cut off",
                           absl::FormatDuration(child.spec.silence)),
           now);
    } else if (now >= child.deadline) {
      OnDeadline(index, now);
    }
    if (child.status.state == ChildState::kServing &&
        now - child.status.since > child.spec.restart.backoff_max) {
      child.history.OnStable();
    }
  }
  Advance(now);
}

void Supervisor::OnDeadline(int index, absl::Time now) {
  Child& child = children_[index];
  const ChildStatus& status = child.status;
  child.deadline = absl::InfiniteFuture();
  switch (status.state) {
    case ChildState::kSweeping:
      Sweep(index, now);
      break;
    case ChildState::kWaiting:
      Start(index, now);
      break;
    case ChildState::kStarting: {
      const StartPhase& phase = child.spec.phases[status.phase];
      std::vector<int> late;
      for (int rank = 0; rank < child.spec.ranks; ++rank) {
        if (status.rank_phases[rank] <= status.phase) {
          late.push_back(rank);
        }
      }
      actions_.push_back(
          {.kind = Kind::kLate, .child = index, .ranks = std::move(late), .text = phase.name});
      Kill(index, static_cast<int>(ExitCode::kStalled),
           absl::StrFormat("start phase=%s is not over after %s", phase.name,
                           absl::FormatDuration(phase.limit)),
           now);
      break;
    }
    case ChildState::kDraining:
      Kill(index, std::nullopt, "the drain does not end", now);
      break;
    case ChildState::kEnding:
      Kill(index, std::nullopt, "it does not leave", now);
      break;
    case ChildState::kServing:
    case ChildState::kStopped:
    case ChildState::kFailed:
      break;
  }
}

bool Supervisor::AreAllDown(ChildKind kind) const {
  return std::all_of(children_.begin(), children_.end(), [kind](const Child& child) {
    return child.spec.kind != kind || IsDown(child.status.state);
  });
}

bool Supervisor::HaveAllFailed(ChildKind kind) const {
  int of_kind = 0;
  int failed = 0;
  for (const Child& child : children_) {
    of_kind += child.spec.kind == kind ? 1 : 0;
    failed += child.spec.kind == kind && child.status.state == ChildState::kFailed ? 1 : 0;
  }
  return of_kind > 0 && failed == of_kind;
}

void Supervisor::AnnounceFleet() {
  bool has_replica = false;
  for (const Child& child : children_) {
    const bool serves = child.status.state == ChildState::kServing;
    has_replica = has_replica || (serves && child.spec.kind == ChildKind::kReplica);
    if (child.spec.kind == ChildKind::kBalancer && !serves) {
      return;
    }
  }
  if (has_replica && !is_announced_) {
    is_announced_ = true;
    actions_.push_back({.kind = Kind::kFleetServing});
  }
}

void Supervisor::AdvanceRollingRestart(absl::Time now) {
  if (rolling_child_ >= 0) {
    const ChildStatus& status = children_[rolling_child_].status;
    if (status.state == ChildState::kFailed) {
      Report(rolling_child_, LogLevel::kError, "does not come back: the rolling restart stops");
      rolling_.clear();
      rolling_child_ = -1;
    } else if (status.state == ChildState::kServing && status.epoch > rolling_epoch_) {
      rolling_child_ = -1;
    }
  }
  if (rolling_child_ < 0 && !rolling_.empty()) {
    rolling_child_ = rolling_.front();
    rolling_.pop_front();
    rolling_epoch_ = children_[rolling_child_].status.epoch;
    Report(rolling_child_, LogLevel::kInfo, "rolling restart");
    DrainChild(rolling_child_, /*restart=*/true, now);
  }
}

// What follows from several children together.
void Supervisor::Advance(absl::Time now) {
  if (!is_stopping()) {
    for (const ChildKind kind : {ChildKind::kReplica, ChildKind::kBalancer}) {
      if (HaveAllFailed(kind)) {
        for (const Child& child : children_) {
          if (child.spec.kind == kind) {
            finish_code_ = static_cast<ExitCode>(*child.status.exit_code);
          }
        }
        Stop(now);
        return;
      }
    }
    AdvanceRollingRestart(now);
    return;
  }
  // Balancers first: their streams need the replicas.
  const ChildKind next =
      AreAllDown(ChildKind::kBalancer) ? ChildKind::kReplica : ChildKind::kBalancer;
  for (int index = 0; index < size() && stops_ == 1; ++index) {
    const Child& child = children_[index];
    const bool is_up =
        child.status.state == ChildState::kServing || child.status.state == ChildState::kStarting;
    if (is_up && (child.spec.kind == next || child.status.state == ChildState::kStarting)) {
      DrainChild(index, /*restart=*/false, now);
    }
  }
  if (AreAllDown(ChildKind::kReplica) && AreAllDown(ChildKind::kBalancer) && !is_finished_) {
    is_finished_ = true;
    actions_.push_back({.kind = Kind::kFinish, .code = finish_code_});
  }
}

}  // namespace trireme::launcher
