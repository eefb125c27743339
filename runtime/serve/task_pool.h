// A few threads that do the computing of the door (parsing, tokenizing, templates), so that
// reactors only copy and enqueue. Bounded: a full queue refuses at once.
#ifndef TRIREME_RUNTIME_SERVE_TASK_POOL_H_
#define TRIREME_RUNTIME_SERVE_TASK_POOL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "runtime/base/mutex.h"

namespace trireme::serve {

class TaskPool {
 public:
  TaskPool(int threads, size_t queued_tasks_max);
  // Runs what is queued, then joins.
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  // False when the queue is full; the task is dropped then. Any thread; never blocks.
  bool Submit(std::function<void()> task);

 private:
  void Run();

  const size_t queued_tasks_max_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_TASK_POOL_H_
