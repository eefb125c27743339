// The end of a group as its own process sees it: the first reason, and whether there is one.
#ifndef TRIREME_RUNTIME_COMM_ABORT_STATE_H_
#define TRIREME_RUNTIME_COMM_ABORT_STATE_H_

#include <atomic>
#include <mutex>

#include "absl/status/status.h"

namespace trireme::comm {

// Any thread.
class AbortState {
 public:
  // Keeps `reason` (not OK) if it is the first; returns whether it was.
  bool Set(absl::Status reason);

  bool IsSet() const { return is_set_.load(std::memory_order_acquire); }

  // OK until Set was called. Costs one load while OK.
  absl::Status Get() const;

 private:
  std::atomic<bool> is_set_{false};
  mutable std::mutex mutex_;  // the thread sanitizer sees std::mutex, not abseil's
  absl::Status reason_;       // guarded by mutex_
};

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_ABORT_STATE_H_
