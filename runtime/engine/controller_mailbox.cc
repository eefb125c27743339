#include "runtime/engine/controller_mailbox.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/base/check.h"
#include "runtime/base/error_reason.h"

namespace trireme::engine {

ControllerMailbox::ControllerMailbox(int plans_in_flight_max, int32_t queued_requests_max,
                                     int32_t samples_max)
    : plans_in_flight_max_(plans_in_flight_max),
      queued_requests_max_(queued_requests_max),
      samples_max_(samples_max),
      results_(MakeResults()) {}

std::vector<StepResult> ControllerMailbox::MakeResults() const {
  std::vector<StepResult> results(static_cast<size_t>(plans_in_flight_max_));
  for (StepResult& result : results) {
    result.token_ids.reserve(static_cast<size_t>(samples_max_));
    result.logprobs.reserve(static_cast<size_t>(samples_max_));
  }
  return results;
}

absl::Status ControllerMailbox::Submit(std::unique_ptr<LiveRequest> request) {
  MutexLock lock(&mutex_);
  if (!stop_reason_.ok()) {
    return stop_reason_;
  }
  if (draining_) {
    return WithReason(
        absl::UnavailableError("the replica is draining and takes no new requests; try another"),
        kReasonDraining);
  }
  if (queued_requests_ >= queued_requests_max_) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrFormat(
            "%d requests wait already, the most that may; try again later", queued_requests_)),
        kReasonOverloaded);
  }
  const std::string& id = request->request().id;
  if (!live_.try_emplace(id, request.get()).second) {
    return WithReason(absl::AlreadyExistsError(absl::StrFormat(
                          "request id '%s' belongs to a live request; use a new one", id)),
                      kReasonRequestId);
  }
  ++queued_requests_;
  requests_.push_back(std::move(request));
  Wake();
  return absl::OkStatus();
}

bool ControllerMailbox::Cancel(absl::string_view request_id) {
  MutexLock lock(&mutex_);
  const auto live = live_.find(request_id);
  if (live == live_.end()) {
    return false;
  }
  live->second->RequestCancel();
  Wake();
  return true;
}

void ControllerMailbox::PushResult(StepResult& result) {
  MutexLock lock(&mutex_);
  if (!stop_reason_.ok()) {
    return;
  }
  if (result_count_ == results_.size()) {
    stop_reason_ =
        WithReason(absl::InternalError(absl::StrFormat(
                       "the ranks sent a result for step %d that no plan asked for", result.step)),
                   kReasonBug);
  } else {
    std::swap(results_[result_count_], result);
    ++result_count_;
  }
  Wake();
}

void ControllerMailbox::Stop(const absl::Status& reason) {
  CHECK(!reason.ok());
  MutexLock lock(&mutex_);
  if (stop_reason_.ok()) {
    stop_reason_ = reason;
    Wake();
  }
}

void ControllerMailbox::Drain(std::function<void()> on_idle) {
  MutexLock lock(&mutex_);
  draining_ = true;
  if (on_idle != nullptr) {
    idle_callbacks_.push_back(std::move(on_idle));
  }
  Wake();
}

bool ControllerMailbox::draining() const {
  MutexLock lock(&mutex_);
  return draining_;
}

int64_t ControllerMailbox::queued_requests() const {
  MutexLock lock(&mutex_);
  return queued_requests_;
}

void ControllerMailbox::Wait(absl::Duration timeout, ControllerMail* mail) {
  MutexLock lock(&mutex_);
  // Waking without mail does no harm: the loop finds nothing and comes back.
  if (!has_mail_ && timeout > absl::ZeroDuration()) {
    mail_came_.WaitFor(&mutex_, timeout);
  }
  has_mail_ = false;
  mail->requests.clear();
  std::swap(mail->requests, requests_);
  if (mail->results.size() != results_.size()) {
    mail->results = MakeResults();
  }
  for (size_t index = 0; index < result_count_; ++index) {
    std::swap(mail->results[index], results_[index]);
  }
  mail->result_count = result_count_;
  result_count_ = 0;
  mail->stop_reason = stop_reason_;
}

void ControllerMailbox::LeaveQueue() {
  MutexLock lock(&mutex_);
  CHECK_GT(queued_requests_, 0);
  --queued_requests_;
}

void ControllerMailbox::Forget(const LiveRequest& request) {
  MutexLock lock(&mutex_);
  CHECK_EQ(live_.erase(request.request().id), 1u);
}

std::vector<std::function<void()>> ControllerMailbox::TakeIdleCallbacks() {
  MutexLock lock(&mutex_);
  if (!live_.empty()) {
    return {};
  }
  return std::exchange(idle_callbacks_, {});
}

void ControllerMailbox::Wake() {
  has_mail_ = true;
  mail_came_.SignalOne();
}

}  // namespace trireme::engine
