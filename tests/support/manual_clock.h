// A clock that stands still until the test moves it.
#ifndef TRIREME_TESTS_SUPPORT_MANUAL_CLOCK_H_
#define TRIREME_TESTS_SUPPORT_MANUAL_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "runtime/base/clock.h"

namespace trireme::testing {

// Any thread.
class ManualClock : public Clock {
 public:
  absl::Time Now() override {
    return absl::UnixEpoch() + absl::Nanoseconds(nanoseconds_.load(std::memory_order_relaxed));
  }
  void Advance(absl::Duration duration) {
    nanoseconds_.fetch_add(absl::ToInt64Nanoseconds(duration), std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> nanoseconds_{1000000000};
};

}  // namespace trireme::testing

#endif  // TRIREME_TESTS_SUPPORT_MANUAL_CLOCK_H_
