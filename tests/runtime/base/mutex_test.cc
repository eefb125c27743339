#include "runtime/base/mutex.h"

#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace trireme {
namespace {

TEST(MutexTest, LetsOneThreadInAtATime) {
  Mutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&mutex, &count] {
      for (int round = 0; round < 5000; ++round) {
        MutexLock lock(&mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(count, 20000);
}

TEST(MutexTest, ASignalEndsAWait) {
  Mutex mutex;
  ConditionVariable changed;
  bool ready = false;
  std::thread signaller([&] {
    MutexLock lock(&mutex);
    ready = true;
    changed.SignalOne();
  });
  {
    MutexLock lock(&mutex);
    while (!ready) {
      changed.Wait(&mutex);
    }
  }
  signaller.join();
}

TEST(MutexTest, ATimeoutEndsAWaitAndNegativeOnesEndAtOnce) {
  Mutex mutex;
  ConditionVariable never;
  const auto start = std::chrono::steady_clock::now();
  MutexLock lock(&mutex);
  never.WaitFor(&mutex, absl::Milliseconds(5));
  never.WaitFor(&mutex, -absl::InfiniteDuration());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::hours(1));
}

TEST(MutexTest, AWaitForAConditionSaysWhetherItCameTrue) {
  Mutex mutex;
  ConditionVariable changed;
  int count = 0;
  std::thread counter([&] {
    for (int round = 0; round < 3; ++round) {
      MutexLock lock(&mutex);
      ++count;
      changed.SignalAll();
    }
  });
  {
    MutexLock lock(&mutex);
    EXPECT_TRUE(changed.WaitFor(&mutex, absl::Hours(1), [&count] { return count == 3; }));
    EXPECT_FALSE(changed.WaitFor(&mutex, absl::Milliseconds(5), [&count] { return count == 4; }));
    EXPECT_TRUE(changed.WaitFor(&mutex, -absl::InfiniteDuration(), [] { return true; }));
  }
  counter.join();
}

TEST(NotificationTest, AWaitWithATimeoutSaysWhetherItHappened) {
  Notification notification;
  EXPECT_FALSE(notification.WaitForNotificationWithTimeout(absl::Milliseconds(5)));
  std::thread notifier([&notification] { notification.Notify(); });
  EXPECT_TRUE(notification.WaitForNotificationWithTimeout(absl::Hours(1)));
  notifier.join();
}

TEST(NotificationTest, MayBeDestroyedByTheOneWhoWaited) {
  for (int round = 0; round < 200; ++round) {
    auto notification = std::make_unique<Notification>();
    EXPECT_FALSE(notification->HasBeenNotified());
    std::thread notifier([raw = notification.get()] { raw->Notify(); });
    notification->WaitForNotification();
    EXPECT_TRUE(notification->HasBeenNotified());
    notifier.join();
  }
}

}  // namespace
}  // namespace trireme
