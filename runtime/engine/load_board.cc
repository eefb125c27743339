#include "runtime/engine/load_board.h"

#include <algorithm>

namespace trireme::engine {
namespace {

// Weight of the past in each new step: about ten steps count.
constexpr double kDecay = 0.9;

}  // namespace

void LoadBoard::StepFinished(absl::Duration step_time, absl::Duration step_interval,
                             int32_t prefill_tokens) {
  MutexLock lock(&mutex_);
  step_times_[steps_ % kSteps] = step_time;
  ++steps_;
  if (prefill_tokens > 0) {
    recent_prefill_tokens_ = kDecay * recent_prefill_tokens_ + prefill_tokens;
    recent_prefill_seconds_ =
        kDecay * recent_prefill_seconds_ + absl::ToDoubleSeconds(step_interval);
  }
}

void LoadBoard::Publish(const Load& load) {
  MutexLock lock(&mutex_);
  load_ = load;
}

Load LoadBoard::Read() const {
  MutexLock lock(&mutex_);
  Load load = load_;
  std::array<absl::Duration, kSteps> sorted = step_times_;
  const size_t count = std::min<uint64_t>(steps_, kSteps);
  if (count > 0) {
    std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count));
    load.step_time_p50 = sorted[(count - 1) / 2];
    load.step_time_p99 = sorted[(count - 1) * 99 / 100];
  }
  if (recent_prefill_seconds_ > 0) {
    load.prefill_tokens_per_second = recent_prefill_tokens_ / recent_prefill_seconds_;
  }
  return load;
}

}  // namespace trireme::engine
