// LossVerdict: who is to blame for the end of a replica. A transfer that fails is a symptom: its
// peer may be the culprit or one that left because of the culprit. The control link knows which,
// some milliseconds earlier or later; whoever sees a symptom waits for its word.
#ifndef TRIREME_RUNTIME_ENGINE_LOSS_VERDICT_H_
#define TRIREME_RUNTIME_ENGINE_LOSS_VERDICT_H_

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/mutex.h"

namespace trireme::engine {

// Any thread.
class LossVerdict {
 public:
  // The control link's word (not OK); the first one stays.
  void Set(absl::Status reason);

  // OK until Set was called.
  absl::Status Get() const;

  // The verdict, when there is one within `patience`, in place of `symptom`. What is not
  // Unavailable is no sign of a lost peer (an ordered end, a message that cannot be read) and comes
  // back at once, as does OK.
  absl::Status Explain(const absl::Status& symptom, absl::Duration patience) const;

 private:
  mutable Mutex mutex_;
  mutable ConditionVariable is_set_;
  absl::Status reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_LOSS_VERDICT_H_
