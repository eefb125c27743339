#include "runtime/serve/task_pool.h"

#include <utility>

namespace trireme::serve {

TaskPool::TaskPool(int threads, size_t queued_tasks_max) : queued_tasks_max_(queued_tasks_max) {
  for (int index = 0; index < threads; ++index) {
    threads_.emplace_back([this] { Run(); });
  }
}

TaskPool::~TaskPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

bool TaskPool::Submit(std::function<void()> task) {
  MutexLock lock(&mutex_);
  if (stopping_ || tasks_.size() >= queued_tasks_max_) {
    return false;
  }
  tasks_.push_back(std::move(task));
  changed_.SignalOne();
  return true;
}

void TaskPool::Run() {
  MutexLock lock(&mutex_);
  while (true) {
    while (tasks_.empty() && !stopping_) {
      changed_.Wait(&mutex_);
    }
    if (tasks_.empty()) {
      return;
    }
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    mutex_.Unlock();
    task();
    task = nullptr;
    mutex_.Lock();
  }
}

}  // namespace trireme::serve
