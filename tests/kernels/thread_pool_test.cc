#include "kernels/cpu/thread_pool.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace trireme::kernels::cpu {
namespace {

TEST(ThreadPoolTest, RunsEveryTaskExactlyOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int64_t task_count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(task_count));
      pool.ParallelFor(task_count, [&](int64_t task_index, int /*worker_index*/) {
        runs[static_cast<size_t>(task_index)].fetch_add(1);
      });
      for (const std::atomic<int>& count : runs) {
        ASSERT_EQ(count.load(), 1) << threads << " threads, " << task_count << " tasks";
      }
    }
  }
}

TEST(ThreadPoolTest, WorkerIndicesStayBelowTheThreadCountAndNameOneThreadEach) {
  ThreadPool pool(4);
  std::vector<std::set<std::thread::id>> seen(4);
  std::mutex mutex;
  for (int region = 0; region < 200; ++region) {
    pool.ParallelFor(16, [&](int64_t /*task_index*/, int worker_index) {
      const std::scoped_lock lock(mutex);
      ASSERT_GE(worker_index, 0);
      ASSERT_LT(worker_index, 4);
      seen[static_cast<size_t>(worker_index)].insert(std::this_thread::get_id());
    });
  }
  for (const std::set<std::thread::id>& ids : seen) {
    EXPECT_LE(ids.size(), 1U);
  }
}

// Plain stores by tasks, plain loads by the caller: the thread sanitizer sees any missing order.
TEST(ThreadPoolTest, ManySmallRegionsSumRight) {
  constexpr int kRegions = 100'000;
  constexpr int kTasks = 5;
  ThreadPool pool(2);
  int64_t results[kTasks] = {};
  int64_t sum = 0;
  for (int64_t region = 0; region < kRegions; ++region) {
    pool.ParallelFor(kTasks, [&](int64_t task_index, int /*worker_index*/) {
      results[task_index] = region * kTasks + task_index;
    });
    sum += std::accumulate(results, results + kTasks, int64_t{0});
  }
  constexpr int64_t kCount = int64_t{kRegions} * kTasks;
  EXPECT_EQ(sum, kCount * (kCount - 1) / 2);
}

TEST(ThreadPoolTest, MoreThreadsThanCoresStillFinish) {
  ThreadPool pool(16);
  std::vector<int64_t> results(64);
  for (int64_t region = 0; region < 500; ++region) {
    pool.ParallelFor(64, [&](int64_t task_index, int /*worker_index*/) {
      results[static_cast<size_t>(task_index)] += task_index;
    });
  }
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i], static_cast<int64_t>(500 * i));
  }
}

TEST(ThreadPoolTest, TwoPoolsRunSideBySide) {
  std::atomic<int64_t> total{0};
  const auto use_pool = [&total] {
    ThreadPool pool(3);
    for (int region = 0; region < 2000; ++region) {
      pool.ParallelFor(6, [&](int64_t task_index, int /*worker_index*/) {
        total.fetch_add(task_index, std::memory_order_relaxed);
      });
    }
  };
  std::thread other(use_pool);
  use_pool();
  other.join();
  EXPECT_EQ(total.load(), 2 * 2000 * 15);
}

// Threads of this process other than the caller that the kernel does not report as sleeping.
int AwakeThreads() {
  int awake = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    if (entry.path().filename() == std::to_string(gettid())) {
      continue;
    }
    std::string line;
    std::getline(std::ifstream(entry.path() / "stat") >> std::ws, line);
    const size_t end_of_name = line.rfind(')');
    const bool sleeps = end_of_name == std::string::npos || line[end_of_name + 2] == 'S';
    awake += sleeps ? 0 : 1;
  }
  return awake;
}

bool AllSleepWithin(std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (AwakeThreads() > 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

TEST(ThreadPoolTest, AnIdlePoolSleepsAndWakesForTheNextRegion) {
  ThreadPool pool(4);
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(AllSleepWithin(std::chrono::seconds(20)));
    std::atomic<int> runs{0};
    pool.ParallelFor(8, [&](int64_t /*task_index*/, int /*worker_index*/) { runs.fetch_add(1); });
    ASSERT_EQ(runs.load(), 8);
  }
}

TEST(ThreadPoolTest, CanBeDestroyedAsleepAndUnused) {
  for (int round = 0; round < 20; ++round) {
    const ThreadPool unused(4);
  }
  ThreadPool asleep(4);
  asleep.ParallelFor(8, [](int64_t /*task_index*/, int /*worker_index*/) {});
  EXPECT_TRUE(AllSleepWithin(std::chrono::seconds(20)));
}

}  // namespace
}  // namespace trireme::kernels::cpu
