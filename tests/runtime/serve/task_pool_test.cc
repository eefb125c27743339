#include "runtime/serve/task_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include "runtime/base/mutex.h"

namespace trireme::serve {
namespace {

TEST(TaskPool, RunsEveryTaskBeforeItGoes) {
  std::atomic<int> runs = 0;
  {
    TaskPool pool(2, 100);
    for (int index = 0; index < 100; ++index) {
      EXPECT_TRUE(pool.Submit([&runs] { ++runs; }));
    }
  }
  EXPECT_EQ(runs, 100);
}

TEST(TaskPool, RefusesWhenTheQueueIsFull) {
  Notification started;
  Notification release;
  std::atomic<int> runs = 0;
  {
    TaskPool pool(1, 2);
    ASSERT_TRUE(pool.Submit([&] {
      started.Notify();
      release.WaitForNotification();
    }));
    started.WaitForNotification();
    EXPECT_TRUE(pool.Submit([&runs] { ++runs; }));
    EXPECT_TRUE(pool.Submit([&runs] { ++runs; }));
    EXPECT_FALSE(pool.Submit([&runs] { ++runs; }));
    release.Notify();
  }
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace trireme::serve
