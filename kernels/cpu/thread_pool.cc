#include "kernels/cpu/thread_pool.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <thread>
#include <vector>

namespace trireme::kernels::cpu {
namespace {

// A healthy neighbour core answers within 1 us and a futex needs 22 us and more, so a wait that is
// going to be short spins it out; beyond this the other side has probably lost its core.
constexpr int64_t kSpinNanoseconds = 40'000;
constexpr int kPausesPerClockReading = 16;
constexpr int kYields = 4;
constexpr int64_t kTasksPerRegionMax = int64_t{1} << 30;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int64_t NowNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void FutexWait(std::atomic<uint32_t>& word, uint32_t expected) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr,
          nullptr, 0);
}

void FutexWake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr,
          nullptr, 0);
}

// Spins, then yields; true as soon as `done` holds, false when it is time to sleep.
template <typename Done>
bool WaitAwake(int64_t spin_nanoseconds, const Done& done) {
  if (spin_nanoseconds > 0) {
    const int64_t deadline = NowNanoseconds() + spin_nanoseconds;
    do {
      for (int i = 0; i < kPausesPerClockReading; ++i) {
        if (done()) {
          return true;
        }
        Pause();
      }
    } while (NowNanoseconds() < deadline);
  }
  for (int i = 0; i < kYields; ++i) {
    if (done()) {
      return true;
    }
    std::this_thread::yield();
  }
  return done();
}

}  // namespace

// One ParallelFor is a region. `claims` holds the region's number above and its unclaimed tasks
// below, so a claim by a thread that slept through a region's end fails or joins the next region,
// never mixes the two. A region cannot end before its claimed tasks have, hence whoever claimed a
// task may read the description of the region without a lock.
struct ThreadPool::State {
  // Constant after construction.
  int64_t spin_nanoseconds = 0;
  std::vector<std::thread> workers;

  // Written by the caller between regions.
  TaskFunction function = nullptr;
  const void* context = nullptr;
  int64_t first_task = 0;
  uint32_t task_count = 0;

  // Shared; a cache line each, for each is hammered at another moment.
  alignas(64) std::atomic<uint64_t> claims{0};
  alignas(64) std::atomic<uint32_t> unfinished{0};  // tasks of this region; the caller sleeps on it
  std::atomic<uint32_t> caller_sleeps{0};
  alignas(64) std::atomic<uint32_t> region{0};  // the workers sleep on it
  std::atomic<uint32_t> sleeping_workers{0};
  std::atomic<bool> stop{false};

  void RunTasks(int worker_index) {
    uint32_t finished = 0;
    uint64_t seen = claims.load(std::memory_order_acquire);
    while (static_cast<uint32_t>(seen) != 0) {
      if (!claims.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
        continue;
      }
      const uint32_t task_index = task_count - static_cast<uint32_t>(seen);
      function(context, first_task + task_index, worker_index);
      ++finished;
      seen = claims.load(std::memory_order_acquire);
    }
    if (finished == 0) {
      return;
    }
    if (unfinished.fetch_sub(finished) == finished && caller_sleeps.load() != 0) {
      FutexWake(unfinished, 1);
    }
  }

  void Announce() {
    region.fetch_add(1);
    if (sleeping_workers.load() != 0) {
      FutexWake(region, INT_MAX);
    }
  }

  void WaitForTasks() {
    const auto all_finished = [this] { return unfinished.load(std::memory_order_acquire) == 0; };
    if (WaitAwake(spin_nanoseconds, all_finished)) {
      return;
    }
    caller_sleeps.store(1);
    for (uint32_t left = unfinished.load(); left != 0; left = unfinished.load()) {
      FutexWait(unfinished, left);
    }
    caller_sleeps.store(0);
  }

  void WorkerMain(int worker_index) {
    uint32_t seen_region = 0;
    while (!stop.load(std::memory_order_acquire)) {
      const auto announced = [this, seen_region] {
        return region.load(std::memory_order_acquire) != seen_region;
      };
      if (!WaitAwake(spin_nanoseconds, announced)) {
        sleeping_workers.fetch_add(1);
        while (region.load() == seen_region) {
          FutexWait(region, seen_region);
        }
        sleeping_workers.fetch_sub(1);
      }
      seen_region = region.load(std::memory_order_acquire);
      RunTasks(worker_index);
    }
  }
};

ThreadPool::ThreadPool(int threads)
    : threads_(std::max(threads, 1)), state_(std::make_unique<State>()) {
  // With fewer cores than threads a spinning thread keeps the awaited one from running.
  const bool has_core_each = static_cast<unsigned>(threads_) <= std::thread::hardware_concurrency();
  state_->spin_nanoseconds = has_core_each ? kSpinNanoseconds : 0;
  state_->workers.reserve(static_cast<size_t>(threads_ - 1));
  for (int worker_index = 1; worker_index < threads_; ++worker_index) {
    state_->workers.emplace_back([this, worker_index] { state_->WorkerMain(worker_index); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true);
  state_->Announce();
  for (std::thread& worker : state_->workers) {
    worker.join();
  }
}

void ThreadPool::Run(int64_t task_count, const void* context, TaskFunction function) {
  for (int64_t first = 0; first < task_count; first += kTasksPerRegionMax) {
    const auto count = static_cast<uint32_t>(std::min(task_count - first, kTasksPerRegionMax));
    state_->function = function;
    state_->context = context;
    state_->first_task = first;
    state_->task_count = count;
    state_->unfinished.store(count, std::memory_order_relaxed);
    const uint64_t region_number = state_->region.load(std::memory_order_relaxed) + uint64_t{1};
    state_->claims.store(region_number << 32 | count, std::memory_order_release);
    state_->Announce();
    state_->RunTasks(0);
    state_->WaitForTasks();
  }
}

}  // namespace trireme::kernels::cpu
