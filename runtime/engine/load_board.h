// Where the engine thread hangs out the replica's load for whoever asks, and the statistics of the
// latest steps. Durations are of the controller's clock.
//
// Thread rule: StepFinished and Publish by the engine thread, Read by any.
#ifndef TRIREME_RUNTIME_ENGINE_LOAD_BOARD_H_
#define TRIREME_RUNTIME_ENGINE_LOAD_BOARD_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/controller.h"

namespace trireme::engine {

class LoadBoard {
 public:
  // One finished step: how long from its plan to its result, how long since the result before (or
  // since its plan, if that is later), and how many prompt tokens it computed.
  void StepFinished(absl::Duration step_time, absl::Duration step_interval, int32_t prefill_tokens);

  // Replaces what the statistics do not give.
  void Publish(const Load& load);

  // The latest load with step_time_p50, step_time_p99 of the latest 128 steps and
  // prefill_tokens_per_second of the latest ten or so that had prompt tokens.
  Load Read() const;

 private:
  static constexpr size_t kSteps = 128;

  mutable Mutex mutex_;
  Load load_ ABSL_GUARDED_BY(mutex_);
  std::array<absl::Duration, kSteps> step_times_ ABSL_GUARDED_BY(mutex_);
  uint64_t steps_ ABSL_GUARDED_BY(mutex_) = 0;
  double recent_prefill_tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  double recent_prefill_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_LOAD_BOARD_H_
