// Mutex, lock, condition variable and notification: the standard library's, with Clang's thread
// annotations and absl::Duration. Not abseil's own: the packaged library is built without the
// thread sanitizer, which then cannot see its locks and reports races that are none.
#ifndef TRIREME_RUNTIME_BASE_MUTEX_H_
#define TRIREME_RUNTIME_BASE_MUTEX_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace trireme {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class ConditionVariable;
  std::mutex mutex_;
};

// Holds the mutex for its own lifetime.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Waits release the mutex, which the caller holds, and hold it again when they return. They may
// return without a signal: wait in a loop over the condition.
class ConditionVariable {
 public:
  void Wait(Mutex* mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }

  // Returns after `timeout` of the machine's steady clock, or a day, at the latest.
  void WaitFor(Mutex* mutex, absl::Duration timeout) {
    const absl::Duration bounded = std::clamp(timeout, absl::ZeroDuration(), absl::Hours(24));
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait_for(lock, absl::ToChronoNanoseconds(bounded));
    lock.release();
  }

  // Returns when `predicate`, which is asked with the mutex held, is true, or after `timeout`, a
  // day at the latest; its last answer. Whoever changes what it reads must signal.
  template <typename Predicate>
  bool WaitFor(Mutex* mutex, absl::Duration timeout, Predicate predicate) {
    const absl::Duration bounded = std::clamp(timeout, absl::ZeroDuration(), absl::Hours(24));
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    const bool is_true = condition_.wait_for(lock, absl::ToChronoNanoseconds(bounded), predicate);
    lock.release();
    return is_true;
  }

  void SignalOne() { condition_.notify_one(); }
  void SignalAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

// Something that happens once. A waiter may destroy it as soon as its wait returns.
class Notification {
 public:
  void Notify() {
    MutexLock lock(&mutex_);
    notified_ = true;
    happened_.SignalAll();
  }
  bool HasBeenNotified() const {
    MutexLock lock(&mutex_);
    return notified_;
  }
  void WaitForNotification() {
    MutexLock lock(&mutex_);
    while (!notified_) {
      happened_.Wait(&mutex_);
    }
  }
  // False when it has not happened after `timeout`.
  bool WaitForNotificationWithTimeout(absl::Duration timeout) {
    MutexLock lock(&mutex_);
    return happened_.WaitFor(&mutex_, timeout,
                             [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return notified_; });
  }

 private:
  mutable Mutex mutex_;
  ConditionVariable happened_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace trireme

#endif  // TRIREME_RUNTIME_BASE_MUTEX_H_
