// The inside of the forwarding controller: what its two halves share. forwarding_controller.cc
// hears events and keeps the time; forwarder_actions.cc carries out what the core wants.
//
// Not for inclusion elsewhere; forwarding_controller.h is the interface.
#ifndef TRIREME_RUNTIME_BALANCE_FORWARDER_H_
#define TRIREME_RUNTIME_BALANCE_FORWARDER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/balance/action.h"
#include "runtime/balance/attempt_tap.h"
#include "runtime/balance/forwarding_controller.h"
#include "runtime/balance/replica_link.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace trireme::balance {

class Forwarder;

// One replica: its link and what the link hears.
class LinkedReplica final : public ReplicaLinkListener {
 public:
  LinkedReplica(Forwarder* forwarder, ReplicaKey key, ReplicaLinkOptions options, Clock* clock)
      : forwarder_(*forwarder),
        key_(key),
        name_(options.name),
        link_(ReplicaLink::Create(std::move(options), this, clock)) {}

  void OnLoadReport(const v1::LoadReport& report) override;
  void OnWatchLost() override;

  const std::string& name() const { return name_; }
  ReplicaLink& link() { return *link_; }
  // Ends its calls and waits for them.
  void Close() { link_ = nullptr; }

 private:
  Forwarder& forwarder_;
  const ReplicaKey key_;
  const std::string name_;
  std::unique_ptr<ReplicaLink> link_;
};

// A request from Submit to its ending.
struct ForwardedStream {
  schedule::Request request;
  std::shared_ptr<engine::ResponseStream> stream;
  absl::Time arrival;
  std::optional<absl::Time> first_token;
  int64_t tokens = 0;  // delivered by this balancer
  int64_t cached_tokens = 0;
  std::string replica;      // of the newest attempt
  std::string explanation;  // of its choice, when asked for
  // Of the attempt that finished.
  engine::Ending ending;
  std::string text_tail;
};

// What is to be done without the mutex, in this order.
struct SendAttempt {
  std::shared_ptr<ForwardedStream> live;
  StartAttempt start;
};
struct AcceptStream {
  std::shared_ptr<engine::ResponseStream> stream;
  int64_t first_position = 0;
  std::string fingerprint;
};
struct PushTokens {
  std::shared_ptr<engine::ResponseStream> stream;
  std::vector<int32_t> token_ids;
  std::vector<float> logprobs;
  std::string text;
};
struct EndStream {
  std::shared_ptr<engine::ResponseStream> stream;
  engine::Ending ending;
  std::string text_tail;
};
struct ForgetAttempt {
  RequestKey request = 0;
  uint32_t attempt = 0;
};
using Chore = std::variant<SendAttempt, CancelAttempt, AcceptStream, PushTokens, EndStream,
                           ForgetAttempt, std::function<void()>>;

class Forwarder final : public ForwardingController, public AttemptObserver {
 public:
  Forwarder(const ForwardingOptions& options, Clock* clock);
  ~Forwarder() override;

  absl::Status Submit(schedule::Request request,
                      std::shared_ptr<engine::ResponseStream> stream) override;
  bool Cancel(absl::string_view request_id) override;
  absl::Status Score(const std::vector<int32_t>& token_ids,
                     std::function<void(int64_t, absl::Span<const float>)> on_rows) override;
  engine::Load load() const override;
  void Drain(std::function<void()> on_idle) override;
  void Stop(const absl::Status& reason) override;
  void Reconfigure(const BalancerOptions& options) override;
  std::vector<ReplicaView> Replicas() const override;
  BalancerCounts counts() const override;

  // From replicas and attempts.
  void OnLoadReport(ReplicaKey replica, const v1::LoadReport& report);
  void OnWatchLost(ReplicaKey replica);
  void OnAccepted(RequestKey request, uint32_t attempt,
                  const v1::ExecuteAccepted& accepted) override;
  void OnTokens(RequestKey request, uint32_t attempt, v1::ExecuteTokens& tokens) override;
  void OnFinished(RequestKey request, uint32_t attempt, int64_t generated_tokens,
                  const engine::Ending& ending, absl::string_view text_tail) override;
  void OnFailed(RequestKey request, uint32_t attempt, const absl::Status& status,
                absl::Duration retry_after) override;
  void OnOver(RequestKey request, uint32_t attempt) override;

 private:
  // What an action refers to besides itself: the event at hand.
  struct Event {
    v1::ExecuteTokens* tokens = nullptr;
    absl::string_view fingerprint;
  };

  void Translate(Actions& actions, const Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TranslateStart(StartAttempt& start) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TranslateTokens(RequestKey request, v1::ExecuteTokens& tokens)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TranslateEnd(RequestKey request, const absl::Status& status, const RequestStory& story)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelIfUnread(RequestKey request, Actions* actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  engine::Route RouteOf(const ForwardedStream& live, const RequestStory& story) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ForwardedStream* Find(RequestKey request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Carries out what is queued unless another thread does.
  void RunChores() ABSL_LOCKS_EXCLUDED(mutex_);
  void Do(SendAttempt& send);
  void Do(CancelAttempt& cancel);
  void Do(AcceptStream& accept);
  void Do(PushTokens& push);
  void Do(EndStream& end);
  void Do(ForgetAttempt& forget);
  void Do(std::function<void()>& call) { call(); }
  void RunTime();

  const ForwardingOptions options_;
  Clock& clock_;
  mutable Mutex mutex_;
  ConditionVariable sooner_;       // the time thread sleeps too long
  ConditionVariable chores_done_;  // doing_chores_ is false
  BalancerCore core_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<RequestKey, std::shared_ptr<ForwardedStream>> live_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, RequestKey> keys_ ABSL_GUARDED_BY(mutex_);  // by request id
  std::deque<Chore> chores_ ABSL_GUARDED_BY(mutex_);
  bool doing_chores_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time wake_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> on_idle_ ABSL_GUARDED_BY(mutex_);
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);  // why; OK: not stopped
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  // Whoever does chores.
  std::map<std::pair<RequestKey, uint32_t>, std::shared_ptr<SentAttempt>> attempts_;
  // Constant after construction.
  std::map<ReplicaKey, std::unique_ptr<LinkedReplica>> replicas_;
  std::thread time_thread_;
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_FORWARDER_H_
