// The streams that are open now, by request id: so that an id is used once, Cancel finds its
// stream, a lost replica ends all of them and a drain knows when the last one is gone.
#ifndef TRIREME_RUNTIME_SERVE_LIVE_CALLS_H_
#define TRIREME_RUNTIME_SERVE_LIVE_CALLS_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/mutex.h"

namespace trireme::serve {

class LiveCall {
 public:
  virtual ~LiveCall() = default;

  // Ends the call with `status` unless it has ended. Any thread; does not block.
  virtual void End(const absl::Status& status) = 0;
};

class LiveCalls {
 public:
  // AlreadyExists (REQUEST_ID) when a live call has this id, Unavailable with the given status once
  // EndAll was called. Any thread, like all of these.
  absl::Status Add(const std::string& id, std::weak_ptr<LiveCall> call);
  void Remove(const std::string& id);

  // Ends the call with `status`; false when there is none.
  bool EndOne(absl::string_view id, const absl::Status& status);

  // Ends every call, those that come later too.
  void EndAll(const absl::Status& status);

  int64_t count() const;

  // True when no call is left before `patience` has passed. Blocks.
  bool WaitUntilNone(absl::Duration patience);

 private:
  mutable Mutex mutex_;
  ConditionVariable removed_;
  absl::flat_hash_map<std::string, std::weak_ptr<LiveCall>> calls_ ABSL_GUARDED_BY(mutex_);
  absl::Status ended_with_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_LIVE_CALLS_H_
