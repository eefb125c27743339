#include "runtime/base/clock.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(ClockTest, TheSteadyClockNeverGoesBack) {
  absl::Time last = SteadyClock()->Now();
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = SteadyClock()->Now();
    EXPECT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace trireme
