// Fencing: of one request only the highest attempt that was ever seen may run, so that an old
// attempt on the wrong side of a broken link never answers beside a new one.
#ifndef TRIREME_RUNTIME_SERVE_ATTEMPT_FENCE_H_
#define TRIREME_RUNTIME_SERVE_ATTEMPT_FENCE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"

namespace trireme::serve {

class AttemptFence {
 public:
  // Remembers the newest `requests_max` requests.
  explicit AttemptFence(size_t requests_max);

  // The attempt that this one replaces, 0 when it is the first one seen. AlreadyExists (REQUEST_ID)
  // when an equal or higher one was seen. Any thread.
  absl::StatusOr<uint32_t> Admit(const std::string& request_id, uint32_t attempt);

 private:
  const size_t requests_max_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, uint32_t> attempts_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> order_ ABSL_GUARDED_BY(mutex_);  // the ids of attempts_, oldest first
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_ATTEMPT_FENCE_H_
