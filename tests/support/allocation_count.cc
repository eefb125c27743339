#include "tests/support/allocation_count.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local int64_t allocations_of_this_thread = 0;
thread_local int64_t live_bytes_of_this_thread = 0;
thread_local int64_t peak_bytes_of_this_thread = 0;
thread_local bool is_excused = false;
std::atomic<int64_t> allocations_of_all_threads{0};
std::atomic<int64_t> live_bytes_of_all_threads{0};
std::atomic<int64_t> peak_bytes_of_all_threads{0};

// With the word that malloc keeps before each block.
int64_t HeldBytes(void* memory) {
  return memory == nullptr ? 0
                           : static_cast<int64_t>(::malloc_usable_size(memory) + sizeof(size_t));
}

void* Allocate(size_t bytes, size_t alignment) {
  ++allocations_of_this_thread;
  if (!is_excused) {
    allocations_of_all_threads.fetch_add(1, std::memory_order_relaxed);
  }
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) != 0) {
    std::abort();
  }
  live_bytes_of_this_thread += HeldBytes(memory);
  peak_bytes_of_this_thread = std::max(peak_bytes_of_this_thread, live_bytes_of_this_thread);
  const int64_t live = live_bytes_of_all_threads.fetch_add(HeldBytes(memory)) + HeldBytes(memory);
  int64_t peak = peak_bytes_of_all_threads.load();
  while (live > peak && !peak_bytes_of_all_threads.compare_exchange_weak(peak, live)) {
  }
  return memory;
}

void Free(void* memory) {
  live_bytes_of_all_threads.fetch_sub(HeldBytes(memory));
  live_bytes_of_this_thread -= HeldBytes(memory);
  std::free(memory);
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes, alignof(std::max_align_t)); }
void* operator new[](size_t bytes) { return Allocate(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<size_t>(alignment));
}
// A sanitizer's own would not be freed by the functions below.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, alignof(std::max_align_t));
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, alignof(std::max_align_t));
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { Free(memory); }

namespace trireme::testing {

int64_t AllocationsOfThisThread() { return allocations_of_this_thread; }

int64_t AllocationsOfAllThreads() {
  return allocations_of_all_threads.load(std::memory_order_relaxed);
}

int64_t LiveBytesOfThisThread() { return live_bytes_of_this_thread; }

int64_t PeakBytesOfThisThread() { return peak_bytes_of_this_thread; }

void RestartPeakOfThisThread() { peak_bytes_of_this_thread = live_bytes_of_this_thread; }

int64_t LiveBytesOfAllThreads() { return live_bytes_of_all_threads.load(); }

int64_t PeakBytesOfAllThreads() { return peak_bytes_of_all_threads.load(); }

void RestartPeakOfAllThreads() {
  peak_bytes_of_all_threads.store(live_bytes_of_all_threads.load());
}

void ExcuseThisThread() { is_excused = true; }

}  // namespace trireme::testing
