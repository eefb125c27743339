#include "runtime/engine/loss_verdict.h"

#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/clock.h"

namespace trireme::engine {

void LossVerdict::Set(absl::Status reason) {
  CHECK(!reason.ok());
  MutexLock lock(&mutex_);
  if (reason_.ok()) {
    reason_ = std::move(reason);
    is_set_.SignalAll();
  }
}

absl::Status LossVerdict::Get() const {
  MutexLock lock(&mutex_);
  return reason_;
}

absl::Status LossVerdict::Explain(const absl::Status& symptom, absl::Duration patience) const {
  MutexLock lock(&mutex_);
  if (!absl::IsUnavailable(symptom)) {
    return symptom;
  }
  const absl::Time deadline = SteadyClock()->Now() + patience;
  while (reason_.ok()) {
    const absl::Duration left = deadline - SteadyClock()->Now();
    if (left <= absl::ZeroDuration()) {
      return symptom;
    }
    is_set_.WaitFor(&mutex_, left);
  }
  return reason_;
}

}  // namespace trireme::engine
