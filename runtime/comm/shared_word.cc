#include "runtime/comm/shared_word.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

#include "runtime/base/cpu_relax.h"
#include "runtime/base/status_macros.h"

namespace trireme::comm {
namespace {

// A yield takes 0.3 us alone and lets a peer on the same core run; after these the wait is long.
constexpr int kYields = 64;
constexpr int64_t kSleepNanoseconds = 50'000'000;

uint32_t* Address(SharedWord& word) {
  static_assert(sizeof(word.value) == sizeof(uint32_t));
  return reinterpret_cast<uint32_t*>(&word.value);
}

void SleepWhileEqual(SharedWord& word, uint32_t seen) {
  const timespec timeout = {.tv_sec = 0, .tv_nsec = kSleepNanoseconds};
  // Not FUTEX_PRIVATE: the word may be shared between processes. Any return leads to a new look.
  ::syscall(SYS_futex, Address(word), FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

absl::Status SleepUntilAtLeast(SharedWord& word, uint32_t target,
                               absl::FunctionRef<absl::Status()> stop) {
  while (true) {
    word.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t seen = word.value.load(std::memory_order_seq_cst);
    const bool reached = IsAtLeast(seen, target);
    absl::Status stopped = reached ? absl::OkStatus() : stop();
    if (!reached && stopped.ok()) {
      SleepWhileEqual(word, seen);
    }
    word.sleepers.fetch_sub(1, std::memory_order_relaxed);
    if (reached) {
      return absl::OkStatus();
    }
    if (!stopped.ok()) {
      // The peer may have published and left between the two looks: what it sent counts.
      return IsAtLeast(word.value.load(std::memory_order_acquire), target) ? absl::OkStatus()
                                                                           : stopped;
    }
  }
}

}  // namespace

void Publish(SharedWord& word, uint32_t value) {
  word.value.store(value, std::memory_order_seq_cst);
  if (word.sleepers.load(std::memory_order_seq_cst) != 0) {
    WakeSleepers(word);
  }
}

void WakeSleepers(SharedWord& word) {
  ::syscall(SYS_futex, Address(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

absl::Status WaitUntilAtLeast(SharedWord& word, uint32_t target, SpinBudget& budget,
                              std::atomic<int>& waiting, absl::FunctionRef<absl::Status()> stop) {
  if (IsAtLeast(word.value.load(std::memory_order_acquire), target)) {
    return absl::OkStatus();
  }
  for (int spin = 0; spin < budget.spins(); ++spin) {
    CpuRelax();
    if (IsAtLeast(word.value.load(std::memory_order_acquire), target)) {
      budget.RecordHit();
      return absl::OkStatus();
    }
  }
  budget.RecordMiss();
  for (int yield = 0; yield < kYields; ++yield) {
    ::sched_yield();
    if (IsAtLeast(word.value.load(std::memory_order_acquire), target)) {
      return absl::OkStatus();
    }
  }
  waiting.fetch_add(1, std::memory_order_relaxed);
  absl::Status status = SleepUntilAtLeast(word, target, stop);
  waiting.fetch_sub(1, std::memory_order_relaxed);
  return status;
}

}  // namespace trireme::comm
