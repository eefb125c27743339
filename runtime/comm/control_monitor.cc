#include "runtime/comm/control_monitor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace trireme::comm {
namespace {

constexpr size_t kStepTimesMax = 64;
constexpr int64_t kStallMedians = 50;

}  // namespace

absl::Status PeerLost::ToStatus() const {
  const std::string text =
      absl::StrFormat("rank=%d host=%s step=%d: %s", rank, host, finished_step, reason);
  return cause == LossCause::kStalled ? absl::DeadlineExceededError(text)
                                      : absl::UnavailableError(text);
}

ControlMonitor::ControlMonitor(const MonitorOptions& options, const Member& self,
                               const std::vector<Member>& peers, absl::Time now)
    : options_(options), last_tick_(now) {
  states_.push_back({.member = self, .progress = {}, .last_heard = now, .last_advance = now});
  for (const Member& peer : peers) {
    states_.push_back({.member = peer, .progress = {}, .last_heard = now, .last_advance = now});
  }
  step_times_.reserve(kStepTimesMax);
}

ControlMonitor::State* ControlMonitor::Find(int rank) {
  for (State& state : states_) {
    if (state.member.rank == rank) {
      return &state;
    }
  }
  return nullptr;
}

void ControlMonitor::Report(ControlEvent::Kind kind, const State& state, LossCause cause,
                            std::string reason) {
  if (kind == ControlEvent::Kind::kLost && std::exchange(has_reported_loss_, true)) {
    return;
  }
  events_.push_back({.kind = kind,
                     .peer = {.cause = cause,
                              .rank = state.member.rank,
                              .host = state.member.host,
                              .finished_step = state.progress.finished_step,
                              .reason = std::move(reason)}});
}

void ControlMonitor::RecordStepTime(absl::Duration time) {
  if (step_times_.size() < kStepTimesMax) {
    step_times_.push_back(time);
  } else {
    step_times_[next_step_time_] = time;
    next_step_time_ = (next_step_time_ + 1) % kStepTimesMax;
  }
}

absl::Duration ControlMonitor::StallTime() const {
  if (step_times_.empty()) {
    return options_.stall_timeout;
  }
  std::vector<absl::Duration> sorted = step_times_;
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return std::max(options_.stall_timeout, *middle * kStallMedians);
}

void ControlMonitor::OnProgress(int rank, const Progress& progress, absl::Time now) {
  State* const state = Find(rank);
  if (state == nullptr || state->has_left) {
    return;
  }
  state->last_heard = now;
  const int64_t steps = progress.finished_step - state->progress.finished_step;
  if (steps > 0) {
    RecordStepTime((now - state->last_advance) / steps);
    state->last_advance = now;
  }
  state->progress = {
      .finished_step = std::max(progress.finished_step, state->progress.finished_step),
      .is_waiting = progress.is_waiting};
  if (std::exchange(state->is_suspect, false)) {
    Report(ControlEvent::Kind::kRecovered, *state, LossCause::kSilent, "");
  }
}

void ControlMonitor::OnLeaving(int rank, const absl::Status& reason) {
  State* const state = Find(rank);
  if (state == nullptr || std::exchange(state->has_left, true)) {
    return;
  }
  if (!reason.ok()) {
    // Whoever leaves because of a stall passes on that it was one: all ranks end with one code.
    Report(ControlEvent::Kind::kLost, *state,
           absl::IsDeadlineExceeded(reason) ? LossCause::kStalled : LossCause::kFailed,
           absl::StrFormat("it ends itself: %s", reason.message()));
  }
}

void ControlMonitor::OnClosed(int rank, const std::string& reason) {
  State* const state = Find(rank);
  if (state != nullptr && !std::exchange(state->has_left, true)) {
    Report(ControlEvent::Kind::kLost, *state, LossCause::kClosed, reason);
  }
}

void ControlMonitor::OnIssuedStep(int64_t step, absl::Time now) {
  if (step <= issued_step_) {
    return;
  }
  for (State& state : states_) {
    if (state.progress.finished_step >= issued_step_) {
      state.last_advance = now;  // it had nothing to do until now
    }
  }
  issued_step_ = step;
}

void ControlMonitor::CheckSilence(State& state, absl::Time now) {
  const absl::Duration silence = now - state.last_heard;
  if (state.has_left) {
    return;
  }
  if (silence >= options_.suspect_after && !state.is_suspect) {
    state.is_suspect = true;
    Report(ControlEvent::Kind::kSuspect, state, LossCause::kSilent, "");
  }
  if (silence >= options_.dead_after) {
    state.has_left = true;
    Report(ControlEvent::Kind::kLost, state, LossCause::kSilent,
           absl::StrFormat("no heartbeat for %d ms: its process is stopped, or the network to it "
                           "is cut",
                           absl::ToInt64Milliseconds(silence)));
  }
}

void ControlMonitor::CheckStall(absl::Time now) {
  const absl::Duration stall_time = StallTime();
  const State* culprit = nullptr;
  bool is_stalled = false;
  for (const State& state : states_) {
    if (state.has_left || state.progress.finished_step >= issued_step_) {
      continue;
    }
    is_stalled = is_stalled || now - state.last_advance >= stall_time;
    const bool is_worse = culprit == nullptr ||
                          state.progress.finished_step < culprit->progress.finished_step ||
                          (state.progress.finished_step == culprit->progress.finished_step &&
                           culprit->progress.is_waiting && !state.progress.is_waiting);
    culprit = is_worse ? &state : culprit;
  }
  if (is_stalled) {
    Report(ControlEvent::Kind::kLost, *culprit, LossCause::kStalled,
           absl::StrFormat("step %d was issued and does not finish: no step finished for %d ms",
                           issued_step_, absl::ToInt64Milliseconds(now - culprit->last_advance)));
  }
}

void ControlMonitor::OnTick(absl::Time now) {
  const absl::Duration own_gap = now - std::exchange(last_tick_, now);
  if (own_gap > options_.suspect_after / 2) {
    const absl::Duration forgiven = own_gap - options_.heartbeat_period;
    for (State& state : states_) {
      state.last_heard = std::min(now, state.last_heard + forgiven);
      state.last_advance = std::min(now, state.last_advance + forgiven);
    }
  }
  for (size_t index = 1; index < states_.size(); ++index) {
    CheckSilence(states_[index], now);
  }
  CheckStall(now);
}

std::vector<PeerHealth> ControlMonitor::Peers() const {
  std::vector<PeerHealth> peers;
  for (size_t index = 1; index < states_.size(); ++index) {
    const State& state = states_[index];
    peers.push_back({.rank = state.member.rank,
                     .finished_step = state.progress.finished_step,
                     .last_heard = state.last_heard,
                     .is_waiting = state.progress.is_waiting,
                     .is_suspect = state.is_suspect,
                     .has_left = state.has_left});
  }
  return peers;
}

std::vector<ControlEvent> ControlMonitor::TakeEvents() { return std::exchange(events_, {}); }

}  // namespace trireme::comm
