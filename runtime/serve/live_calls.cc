#include "runtime/serve/live_calls.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/error_reason.h"

namespace trireme::serve {

absl::Status LiveCalls::Add(const std::string& id, std::weak_ptr<LiveCall> call) {
  MutexLock lock(&mutex_);
  if (!ended_with_.ok()) {
    return ended_with_;
  }
  if (!calls_.emplace(id, std::move(call)).second) {
    return WithReason(
        absl::AlreadyExistsError(absl::StrCat("request_id \"", id,
                                              "\" belongs to a request that is still running; "
                                              "choose another id, or leave it empty")),
        kReasonRequestId);
  }
  return absl::OkStatus();
}

void LiveCalls::Remove(const std::string& id) {
  MutexLock lock(&mutex_);
  calls_.erase(id);
  removed_.SignalAll();
}

bool LiveCalls::EndOne(absl::string_view id, const absl::Status& status) {
  std::shared_ptr<LiveCall> call;
  {
    MutexLock lock(&mutex_);
    const auto found = calls_.find(id);
    if (found != calls_.end()) {
      call = found->second.lock();
    }
  }
  if (call == nullptr) {
    return false;
  }
  call->End(status);
  return true;
}

void LiveCalls::EndAll(const absl::Status& status) {
  std::vector<std::shared_ptr<LiveCall>> calls;
  {
    MutexLock lock(&mutex_);
    if (ended_with_.ok()) {
      ended_with_ = status;
    }
    for (const auto& [id, call] : calls_) {
      calls.push_back(call.lock());
    }
  }
  for (const std::shared_ptr<LiveCall>& call : calls) {
    if (call != nullptr) {
      call->End(status);
    }
  }
}

int64_t LiveCalls::count() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(calls_.size());
}

bool LiveCalls::WaitUntilNone(absl::Duration patience) {
  MutexLock lock(&mutex_);
  return removed_.WaitFor(
      &mutex_, patience, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calls_.empty(); });
}

}  // namespace trireme::serve
