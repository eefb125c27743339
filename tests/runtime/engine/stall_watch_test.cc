#include "runtime/engine/stall_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/mutex.h"

namespace trireme::engine {
namespace {

using ::testing::HasSubstr;

constexpr comm::MonitorOptions kQuick = {.heartbeat_period = absl::Milliseconds(5),
                                         .stall_timeout = absl::Milliseconds(200)};

TEST(StallWatchTest, E10_AStepThatDoesNotFinishIsNamedWithItsRank) {
  WorkerProgress ranks[2];
  ranks[0].steps_finished = 8;
  ranks[1].steps_finished = 7;
  ranks[1].is_computing = true;
  absl::Status stall;
  Notification stalled;
  const StallWatch watch(kQuick, {&ranks[0], &ranks[1]}, [&](const absl::Status& status) {
    stall = status;
    stalled.Notify();
  });
  stalled.WaitForNotification();
  EXPECT_TRUE(absl::IsDeadlineExceeded(stall)) << stall;
  EXPECT_THAT(stall.message(), HasSubstr("rank=1 "));
  EXPECT_THAT(stall.message(), HasSubstr("step 8 was issued and does not finish"));
}

// An idle rank is behind nobody, however long it idles; and a step that comes later is watched.
TEST(StallWatchTest, AnIdleReplicaIsNotStalled) {
  WorkerProgress rank;
  rank.steps_finished = 5;
  absl::Status stall;
  Notification stalled;
  const StallWatch watch(kQuick, {&rank}, [&](const absl::Status& status) {
    stall = status;
    stalled.Notify();
  });
  EXPECT_FALSE(stalled.WaitForNotificationWithTimeout(5 * kQuick.stall_timeout));
  rank.is_computing = true;
  stalled.WaitForNotification();
  EXPECT_THAT(stall.message(), HasSubstr("step 6 was issued"));
}

}  // namespace
}  // namespace trireme::engine
