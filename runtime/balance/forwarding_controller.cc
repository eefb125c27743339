#include "runtime/balance/forwarding_controller.h"

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine.pb.h"
#include "runtime/balance/execute_messages.h"
#include "runtime/balance/forwarder.h"
#include "runtime/base/check.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/log.h"
#include "runtime/base/status_macros.h"

namespace trireme::balance {

void LinkedReplica::OnLoadReport(const v1::LoadReport& report) {
  forwarder_.OnLoadReport(key_, report);
}
void LinkedReplica::OnWatchLost() { forwarder_.OnWatchLost(key_); }

Forwarder::Forwarder(const ForwardingOptions& options, Clock* clock)
    : options_(options), clock_(*clock), core_(options.core) {
  for (const ReplicaAddress& address : options_.replicas) {
    Actions none;
    ReplicaKey key = 0;
    {
      MutexLock lock(&mutex_);
      key = core_.OnReplicaAdded(address.name, clock_.Now(), &none);
    }
    replicas_[key] =
        std::make_unique<LinkedReplica>(this, key,
                                        ReplicaLinkOptions{.name = address.name,
                                                           .endpoint = address.endpoint,
                                                           .lease = options_.lease,
                                                           .connections = options_.connections,
                                                           .silence_limit = options_.silence_limit},
                                        clock);
  }
  time_thread_ = std::thread([this] { RunTime(); });
}

Forwarder::~Forwarder() {
  Stop(WithReason(absl::UnavailableError("the balancer is shut down"), kReasonDraining));
  {
    MutexLock lock(&mutex_);
    closing_ = true;
    sooner_.SignalAll();
  }
  time_thread_.join();
  {
    MutexLock lock(&mutex_);
    while (doing_chores_) {
      chores_done_.Wait(&mutex_);
    }
  }
  for (const auto& [key, replica] : replicas_) {
    replica->Close();
  }
}

absl::Status Forwarder::Submit(schedule::Request request,
                               std::shared_ptr<engine::ResponseStream> stream) {
  CHECK(stream != nullptr);
  {
    MutexLock lock(&mutex_);
    if (!stopped_.ok()) {
      return stopped_;
    }
    if (draining_) {
      return WithReason(absl::UnavailableError("this balancer is draining; try another one"),
                        kReasonDraining);
    }
    if (keys_.contains(request.id)) {
      return WithReason(absl::AlreadyExistsError(absl::StrCat("request_id \"", request.id,
                                                              "\" belongs to a request that runs")),
                        kReasonRequestId);
    }
    Actions actions;
    const absl::Time now = clock_.Now();
    ASSIGN_OR_RETURN(const RequestKey key, core_.OnRequest(FactsOf(request), now, &actions));
    keys_[request.id] = key;
    auto live = std::make_shared<ForwardedStream>();
    live->request = std::move(request);
    live->stream = std::move(stream);
    live->arrival = now;
    live_[key] = std::move(live);
    Translate(actions, {});
  }
  RunChores();
  return absl::OkStatus();
}

bool Forwarder::Cancel(absl::string_view request_id) {
  {
    MutexLock lock(&mutex_);
    const auto found = keys_.find(request_id);
    if (found == keys_.end()) {
      return false;
    }
    Actions actions;
    core_.OnCancel(found->second, clock_.Now(), &actions);
    Translate(actions, {});
  }
  RunChores();
  return true;
}

absl::Status Forwarder::Score(const std::vector<int32_t>&,
                              std::function<void(int64_t, absl::Span<const float>)>) {
  return WithReason(absl::UnimplementedError("a balancer has no logits; ask a replica"),
                    kReasonMethodNotSupported);
}

engine::Load Forwarder::load() const {
  MutexLock lock(&mutex_);
  engine::Load load;
  load.waiting_requests = core_.queued_requests();
  load.running_sequences = core_.live_requests() - load.waiting_requests;
  load.draining = draining_;
  for (const ReplicaView& replica : core_.Replicas(clock_.Now())) {
    load.queued_tokens += replica.report.queued_tokens;
    load.running_tokens += replica.report.running_tokens;
    load.blocks_total += replica.report.blocks_total;
    load.blocks_free += replica.report.blocks_free;
    load.prefill_tokens_per_second += replica.report.prefill_tokens_per_second;
  }
  return load;
}

void Forwarder::Drain(std::function<void()> on_idle) {
  {
    MutexLock lock(&mutex_);
    draining_ = true;
    if (live_.empty()) {
      chores_.emplace_back(std::move(on_idle));
    } else {
      on_idle_ = std::move(on_idle);
    }
  }
  RunChores();
}

void Forwarder::Stop(const absl::Status& reason) {
  {
    MutexLock lock(&mutex_);
    if (stopped_.ok()) {
      stopped_ = reason.ok() ? absl::UnavailableError("the balancer is shut down") : reason;
    }
    std::vector<RequestKey> keys;
    for (const auto& [key, live] : live_) {
      keys.push_back(key);
    }
    Actions actions;
    for (const RequestKey key : keys) {
      core_.OnCancel(key, clock_.Now(), &actions);
    }
    Translate(actions, {});
  }
  RunChores();
}

void Forwarder::Reconfigure(const BalancerOptions& options) {
  MutexLock lock(&mutex_);
  core_.Reconfigure(options);
}

std::vector<ReplicaView> Forwarder::Replicas() const {
  MutexLock lock(&mutex_);
  return core_.Replicas(clock_.Now());
}

BalancerCounts Forwarder::counts() const {
  MutexLock lock(&mutex_);
  return core_.counts();
}

void Forwarder::OnLoadReport(ReplicaKey replica, const v1::LoadReport& report) {
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    Actions actions;
    status = core_.OnLoadReport(replica, LoadReportOf(report), clock_.Now(), &actions);
    Translate(actions, {});
  }
  if (!status.ok()) {
    Log(LogLevel::kDebug,
        absl::StrCat("load report refused replica=", replicas_.at(replica)->name(),
                     " reason=", status.message()));
  }
  RunChores();
}

void Forwarder::OnWatchLost(ReplicaKey replica) {
  {
    MutexLock lock(&mutex_);
    Actions actions;
    core_.OnWatchLost(replica, clock_.Now(), &actions);
    Translate(actions, {});
  }
  RunChores();
}

void Forwarder::OnAccepted(RequestKey request, uint32_t attempt,
                           const v1::ExecuteAccepted& accepted) {
  {
    MutexLock lock(&mutex_);
    Actions actions;
    if (ForwardedStream* const live = Find(request); live != nullptr) {
      live->cached_tokens = std::max<int64_t>(accepted.cached_tokens(), 0);
    }
    CancelIfUnread(request, &actions);
    core_.OnAccepted(request, attempt, accepted.fingerprint(), accepted.cached_tokens(),
                     clock_.Now(), &actions);
    Translate(actions, {.fingerprint = accepted.fingerprint()});
  }
  RunChores();
}

void Forwarder::OnTokens(RequestKey request, uint32_t attempt, v1::ExecuteTokens& tokens) {
  {
    MutexLock lock(&mutex_);
    Actions actions;
    CancelIfUnread(request, &actions);
    core_.OnTokens(request, attempt, tokens.first_position(),
                   absl::MakeConstSpan(tokens.token_ids().data(),
                                       static_cast<size_t>(tokens.token_ids_size())),
                   clock_.Now(), &actions);
    Translate(actions, {.tokens = &tokens});
  }
  RunChores();
}

void Forwarder::OnFinished(RequestKey request, uint32_t attempt, int64_t generated_tokens,
                           const engine::Ending& ending, absl::string_view text_tail) {
  {
    MutexLock lock(&mutex_);
    Actions actions;
    if (ForwardedStream* const live = Find(request); live != nullptr) {
      // Counts only when the core finishes the request with this attempt.
      live->ending = ending;
      live->text_tail.assign(text_tail.data(), text_tail.size());
    }
    core_.OnFinished(request, attempt, generated_tokens, clock_.Now(), &actions);
    Translate(actions, {});
  }
  RunChores();
}

void Forwarder::OnFailed(RequestKey request, uint32_t attempt, const absl::Status& status,
                         absl::Duration retry_after) {
  {
    MutexLock lock(&mutex_);
    Actions actions;
    core_.OnAttemptFailed(request, attempt, status, retry_after, clock_.Now(), &actions);
    // What answers out of order may go on answering.
    chores_.emplace_back(CancelAttempt{.request = request, .attempt = attempt});
    Translate(actions, {});
  }
  RunChores();
}

void Forwarder::OnOver(RequestKey request, uint32_t attempt) {
  {
    MutexLock lock(&mutex_);
    chores_.emplace_back(ForgetAttempt{.request = request, .attempt = attempt});
  }
  RunChores();
}

ForwardedStream* Forwarder::Find(RequestKey request) {
  const auto found = live_.find(request);
  return found == live_.end() ? nullptr : found->second.get();
}

// A reader that left without a word to Cancel is noticed when there is something for it.
void Forwarder::CancelIfUnread(RequestKey request, Actions* actions) {
  const ForwardedStream* const live = Find(request);
  if (live != nullptr && live->stream->cancelled()) {
    core_.OnCancel(request, clock_.Now(), actions);
  }
}

// The only thread that waits: for the core's next tick or a link's, whichever is sooner.
void Forwarder::RunTime() {
  for (;;) {
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [key, replica] : replicas_) {
      next = std::min(next, replica->link().Tick(clock_.Now()));
    }
    {
      MutexLock lock(&mutex_);
      const absl::Time now = clock_.Now();
      if (core_.NextTick() <= now) {
        Actions actions;
        core_.OnTick(now, &actions);
        Translate(actions, {});
      }
    }
    RunChores();
    MutexLock lock(&mutex_);
    wake_at_ = std::min(next, core_.NextTick());
    if (closing_) {
      return;
    }
    const absl::Duration pause = wake_at_ - clock_.Now();
    if (pause > absl::ZeroDuration()) {
      sooner_.WaitFor(&mutex_, pause);
    }
    wake_at_ = absl::InfinitePast();
    if (closing_) {
      return;
    }
  }
}

std::unique_ptr<ForwardingController> ForwardingController::Create(const ForwardingOptions& options,
                                                                   Clock* clock) {
  return std::make_unique<Forwarder>(options, clock);
}

}  // namespace trireme::balance
