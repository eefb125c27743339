// A team of threads that runs the tasks of one op after another. Tasks are claimed dynamically from
// one counter, so a worker that loses its core delays only the task it holds. Waits spin briefly,
// then yield, then sleep on a futex (performance.md 2.4): with more runnable threads than cores the
// pool slows down in proportion and does not collapse.
//
// Thread rule: one thread at a time calls ParallelFor; it takes part as worker 0.
#ifndef TRIREME_KERNELS_CPU_THREAD_POOL_H_
#define TRIREME_KERNELS_CPU_THREAD_POOL_H_

#include <cstdint>
#include <memory>

namespace trireme::kernels::cpu {

class ThreadPool {
 public:
  // A pool of `threads` >= 1 workers, the caller of ParallelFor included; threads - 1 threads are
  // started.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(task_index, worker_index) once for each task_index in [0, task_count), on any
  // worker, in any order, and returns when all are done; what tasks wrote is then visible to the
  // caller. Allocates nothing. Not reentrant.
  template <typename Body>
  void ParallelFor(int64_t task_count, const Body& body) {
    if (task_count <= 0) {
      return;
    }
    if (threads_ == 1 || task_count == 1) {
      for (int64_t task_index = 0; task_index < task_count; ++task_index) {
        body(task_index, 0);
      }
      return;
    }
    Run(task_count, &body, [](const void* context, int64_t task_index, int worker_index) {
      (*static_cast<const Body*>(context))(task_index, worker_index);
    });
  }

 private:
  using TaskFunction = void (*)(const void* context, int64_t task_index, int worker_index);
  struct State;

  void Run(int64_t task_count, const void* context, TaskFunction function);

  const int threads_;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::kernels::cpu

#endif  // TRIREME_KERNELS_CPU_THREAD_POOL_H_
