// The one door into the engine thread: requests, cancellations, results, a lost rank, drain and
// stop. Everything that other threads ask of the controller goes through here, and only here do
// they wait for a lock, never for a step.
//
// It outlives the controller where a rank still holds it, so that a late result falls into a closed
// mailbox and not into freed memory.
#ifndef TRIREME_RUNTIME_ENGINE_CONTROLLER_MAILBOX_H_
#define TRIREME_RUNTIME_ENGINE_CONTROLLER_MAILBOX_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/live_request.h"
#include "runtime/engine/step.h"

namespace trireme::engine {

// What the engine thread found in the mailbox. Reused, so that a step allocates nothing.
struct ControllerMail {
  std::vector<std::unique_ptr<LiveRequest>> requests;  // new ones, in order of arrival
  std::vector<StepResult> results;  // [plans in flight]; the first result_count are new, in order
  size_t result_count = 0;
  absl::Status stop_reason;  // not OK: end everything; the results come first
};

class ControllerMailbox {
 public:
  // `plans_in_flight_max` results at most may be unread: more than were asked for is an error of
  // the ranks and ends the replica. Memory for results of `samples_max` tokens is taken here.
  ControllerMailbox(int plans_in_flight_max, int32_t queued_requests_max, int32_t samples_max = 0);

  // ---- any thread

  // AlreadyExists, ResourceExhausted, Unavailable, or the reason of Stop; the request is gone then.
  absl::Status Submit(std::unique_ptr<LiveRequest> request);
  // False when no live request has this id.
  bool Cancel(absl::string_view request_id);
  // Swaps the result in; the caller gets an old one's memory back.
  void PushResult(StepResult& result);
  // The first reason counts; nothing is taken in afterwards.
  void Stop(const absl::Status& reason);
  // `on_idle` is called once by the engine thread when no request lives.
  void Drain(std::function<void()> on_idle);
  bool draining() const;
  int64_t queued_requests() const;

  // ---- the engine thread

  // Sleeps until there is mail or `timeout` has passed, then replaces *mail.
  void Wait(absl::Duration timeout, ControllerMail* mail);
  // The request left the queue: it was accepted, or it ended before.
  void LeaveQueue();
  // The request has ended: its id is free again. Before the request is destroyed.
  void Forget(const LiveRequest& request);
  // The callbacks of Drain, when no request lives or waits in the mailbox.
  std::vector<std::function<void()>> TakeIdleCallbacks();

 private:
  // Their memory goes round with the ranks', so each place has its own from the start.
  std::vector<StepResult> MakeResults() const;
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int plans_in_flight_max_;
  const int32_t queued_requests_max_;
  const int32_t samples_max_;
  mutable Mutex mutex_;
  ConditionVariable mail_came_;
  bool has_mail_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status stop_reason_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<LiveRequest>> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<StepResult> results_ ABSL_GUARDED_BY(mutex_);
  size_t result_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t queued_requests_ ABSL_GUARDED_BY(mutex_) = 0;  // not accepted yet
  absl::flat_hash_map<std::string, LiveRequest*> live_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> idle_callbacks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_CONTROLLER_MAILBOX_H_
