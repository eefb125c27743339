// SharedWord: a counter in memory that several threads or processes share, and the wait until it
// has moved: bounded spin, then yields, then sleep in the kernel (futex).
//
// The spin serves ranks that run side by side (a hop takes under a microsecond); the yields serve
// ranks that share a core, where spinning only keeps the peer from running; the sleep makes an idle
// wait free. Counters wrap: compare with IsAtLeast.
#ifndef TRIREME_RUNTIME_COMM_SHARED_WORD_H_
#define TRIREME_RUNTIME_COMM_SHARED_WORD_H_

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace trireme::comm {

// Zero bytes are a valid word. Whoever lays words out gives each writer its own cache line.
struct SharedWord {
  std::atomic<uint32_t> value;
  std::atomic<uint32_t> sleepers;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free, "words are shared between processes");

// Whether a wrapping counter has reached `target`; right while they differ by less than 2^31.
inline bool IsAtLeast(uint32_t value, uint32_t target) {
  return static_cast<int32_t>(value - target) >= 0;
}

// Stores `value` and wakes whoever sleeps on the word. What was written before is visible to a
// waiter that sees the value.
void Publish(SharedWord& word, uint32_t value);

// Wakes the sleepers without a change, so that they look at their stop condition again.
void WakeSleepers(SharedWord& word);

// How long to spin: grows while spinning pays and shrinks while it does not. One per waiting
// thread.
class SpinBudget {
 public:
  int spins() const { return spins_; }
  void RecordHit() { spins_ = spins_ < kSpinsMax / 2 ? spins_ * 2 : kSpinsMax; }
  void RecordMiss() { spins_ = spins_ > kSpinsMin * 2 ? spins_ / 2 : kSpinsMin; }

 private:
  // A pause takes 10 to 45 ns: at most 20 to 90 us, at least about 1 us.
  static constexpr int kSpinsMax = 2000;
  static constexpr int kSpinsMin = 32;
  int spins_ = kSpinsMax;
};

// Waits until `word` is at least `target`. `stop` is asked about every 50 ms of sleep and at each
// wake-up, and ends the wait with its status when that is not OK. `waiting` counts the waits that
// are past their spin.
absl::Status WaitUntilAtLeast(SharedWord& word, uint32_t target, SpinBudget& budget,
                              std::atomic<int>& waiting, absl::FunctionRef<absl::Status()> stop);

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_SHARED_WORD_H_
