// What a kernel runs on: a pool of threads and scratch memory, both owned by the caller and used by
// one op at a time. One Execution belongs to one rank; two ranks in one process have one each.
#ifndef TRIREME_KERNELS_EXECUTION_H_
#define TRIREME_KERNELS_EXECUTION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/thread_pool.h"

namespace trireme::kernels {

// Scratch bytes that every worker of a pool has for itself inside one task. Ops cut their tiles to
// fit.
inline constexpr int64_t kWorkerScratchBytes = int64_t{1} << 20;

struct Execution {
  cpu::ThreadPool* pool = nullptr;      // not owned
  std::byte* worker_scratch = nullptr;  // [pool->threads()][kWorkerScratchBytes], 64-byte aligned
  std::byte* shared_scratch = nullptr;  // for results that cross tasks of one op, 64-byte aligned
  int64_t shared_scratch_bytes = 0;     // at least what KernelTable::shared_scratch_bytes asked for

  std::byte* WorkerScratch(int worker_index) const {
    return worker_scratch + worker_index * kWorkerScratchBytes;
  }
};

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_EXECUTION_H_
