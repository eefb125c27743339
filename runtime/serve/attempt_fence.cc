#include "runtime/serve/attempt_fence.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/error_reason.h"

namespace trireme::serve {

AttemptFence::AttemptFence(size_t requests_max) : requests_max_(requests_max) {}

absl::StatusOr<uint32_t> AttemptFence::Admit(const std::string& request_id, uint32_t attempt) {
  MutexLock lock(&mutex_);
  const auto [entry, inserted] = attempts_.emplace(request_id, attempt);
  if (inserted) {
    order_.push_back(request_id);
    if (order_.size() > requests_max_) {
      attempts_.erase(order_.front());
      order_.pop_front();
    }
    return 0;
  }
  const uint32_t seen = entry->second;
  if (attempt <= seen) {
    return WithReason(
        absl::AlreadyExistsError(absl::StrCat("attempt ", attempt, " of request \"", request_id,
                                              "\" comes too late: attempt ", seen, " was seen")),
        kReasonRequestId);
  }
  entry->second = attempt;
  return seen;
}

}  // namespace trireme::serve
