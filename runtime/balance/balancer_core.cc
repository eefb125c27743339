#include "runtime/balance/balancer_core.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/balance/balancer_state.h"
#include "runtime/base/check.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/status_macros.h"

namespace trireme::balance {
namespace {

constexpr absl::Duration kRetryDelay = absl::Seconds(1);

absl::Status Overloaded(int64_t queued, absl::Duration delay) {
  return WithRetryDelay(WithReason(absl::ResourceExhaustedError(absl::StrFormat(
                                       "the balancer's queue is full with %d requests; try again "
                                       "later",
                                       queued)),
                                   kReasonOverloaded),
                        delay);
}

absl::Status CheckFacts(const RequestFacts& facts) {
  if (facts.prompt.empty() || facts.max_tokens < 1) {
    return WithReason(absl::InvalidArgumentError(absl::StrFormat(
                          "prompt has %d tokens and max_tokens is %d, wanted at least 1 of each",
                          facts.prompt.size(), facts.max_tokens)),
                      kReasonBadParameter);
  }
  if (static_cast<int64_t>(facts.emitted.size()) > facts.max_tokens) {
    return WithReason(absl::InvalidArgumentError(absl::StrFormat(
                          "%d tokens are emitted already, wanted at most max_tokens, %d",
                          facts.emitted.size(), facts.max_tokens)),
                      kReasonBadParameter);
  }
  return absl::OkStatus();
}

AttemptFailure ProtocolFault(std::string text) {
  return {.kind = FailureKind::kFault,
          .status = WithReason(absl::InternalError(std::move(text)), kReasonBug),
          .retry_after = {},
          .cancel = true};
}

std::unique_ptr<ForwardedRequest> MakeRequest(RequestKey key, const RequestFacts& facts,
                                              Admission::Tenant* tenant, absl::Time now) {
  auto request = std::make_unique<ForwardedRequest>(facts.emitted, facts.max_tokens);
  request->key = key;
  request->prompt_tokens = static_cast<int64_t>(facts.prompt.size());
  request->deadline = facts.deadline;
  request->policy = facts.disruption_policy;
  request->explain = facts.explain;
  request->delivered_before = request->log.size();
  request->needs_fingerprint = !facts.fingerprint.empty() && !facts.emitted.empty();
  request->fingerprint = std::string(facts.fingerprint);
  request->waits_since = now;
  request->waiting = {
      .request = key, .tenant = tenant, .priority = facts.priority, .deadline = facts.deadline};
  return request;
}

}  // namespace

BalancerCore::State::State(const BalancerOptions& options_in)
    : options(options_in),
      random(options.random_seed),
      replicas(&options.health, &options.pick, options.hash_seed),
      admission(&options.admission),
      budget(&options.retry) {}

ForwardedRequest* BalancerCore::State::Find(RequestKey key) {
  const auto found = requests.find(key);
  return found == requests.end() ? nullptr : found->second.get();
}

ForwardedRequest* BalancerCore::State::Current(RequestKey key, uint32_t attempt) {
  ForwardedRequest* request = Find(key);
  if (request == nullptr || request->phase != RequestPhase::kRunning ||
      request->attempt.number != attempt) {
    ++counts.stale_answers;
    return nullptr;
  }
  return request;
}

absl::Status BalancerCore::State::MakeRoom(const Admission::Tenant* tenant, Priority priority,
                                           bool under_way, absl::Time now, Actions* actions) {
  const auto moves = static_cast<int64_t>(moving.size());
  const bool full = under_way ? moves >= options.admission.queued_requests_max : admission.full();
  if (!full) {
    return absl::OkStatus();
  }
  const absl::Status refusal =
      Overloaded(under_way ? moves : admission.queued(), kRetryDelay + Jitter(kRetryDelay));
  ++counts.shed;
  const std::optional<RequestKey> victim =
      under_way ? std::nullopt : admission.VictimFor(tenant, priority);
  if (!victim.has_value()) {
    return refusal;
  }
  Fail(*Find(*victim), refusal, now, actions);
  return absl::OkStatus();
}

absl::Duration BalancerCore::State::Jitter(absl::Duration duration) {
  return duration * (0.5 + random.Uniform());
}

BalancerCore::BalancerCore(const BalancerOptions& options)
    : state_(std::make_unique<State>(options)) {}
BalancerCore::~BalancerCore() = default;

// ---- Replicas ----------------------------------------------------------------------------------

ReplicaKey BalancerCore::OnReplicaAdded(absl::string_view name, absl::Time now, Actions*) {
  return state_->replicas.Add(name, now)->key;
}

void BalancerCore::OnReplicaRemoved(ReplicaKey key, absl::Time now, Actions* actions) {
  Replica* replica = state_->replicas.Find(key);
  if (replica == nullptr) {
    return;
  }
  MoveAway(key, now, actions);
  state_->replicas.Remove(key);
}

void BalancerCore::MoveAway(ReplicaKey key, absl::Time now, Actions* actions) {
  Replica* replica = state_->replicas.Find(key);
  if (replica == nullptr) {
    return;
  }
  state_->FailAttemptsOf(
      *replica, UINT64_MAX,
      {.kind = FailureKind::kRefused,
       .status = WithReason(absl::UnavailableError("the replica is taken out"), kReasonDraining),
       .retry_after = {},
       .cancel = true,
       .free = true},
      now, actions);
  state_->Dispatch(now, actions);
}

absl::Status BalancerCore::OnLoadReport(ReplicaKey key, const LoadReport& report, absl::Time now,
                                        Actions* actions) {
  Replica* replica = state_->replicas.Find(key);
  if (replica == nullptr) {
    return absl::NotFoundError(absl::StrFormat("load report of replica %d, which is gone", key));
  }
  const uint64_t last_epoch = replica->has_report ? replica->report.epoch : 0;
  const uint64_t last_seq = replica->has_report ? replica->report.report_seq : 0;
  if (absl::Status status = AcceptReport(report, last_epoch, last_seq); !status.ok()) {
    ++state_->counts.reports_refused;
    return status;
  }
  if (replica->Apply(report, now)) {
    state_->FailAttemptsOf(
        *replica, report.epoch,
        {.kind = FailureKind::kLost,
         .status =
             WithReason(absl::UnavailableError("the replica was started anew"), kReasonReplicaLost),
         .retry_after = {},
         .cancel = true,
         .free = true},
        now, actions);
  }
  state_->Dispatch(now, actions);
  return absl::OkStatus();
}

void BalancerCore::OnWatchLost(ReplicaKey key, absl::Time, Actions*) {
  if (Replica* replica = state_->replicas.Find(key); replica != nullptr) {
    replica->lost = true;
  }
}

// ---- Requests ----------------------------------------------------------------------------------

absl::StatusOr<RequestKey> BalancerCore::OnRequest(const RequestFacts& facts, absl::Time now,
                                                   Actions* actions) {
  State& state = *state_;
  RETURN_IF_ERROR(CheckFacts(facts));
  PromptHashes hashes = HashPrompt(state.options.hash_seed, facts.tenant, facts.prompt);
  if (state.quarantine.Holds(hashes.prompt, now)) {
    return WithReason(absl::InternalError("a request with this prompt was running on replicas that "
                                          "died; it is not tried again for a while"),
                      kReasonPoisonSuspect);
  }
  if (now >= facts.deadline) {
    return WithReason(absl::DeadlineExceededError("the deadline had passed on arrival"),
                      kReasonInQueue);
  }
  const bool served = state.replicas.AnyServing(now);
  if (!served && !state.replicas.AnyExpected(now)) {
    return state.NobodyServes(now);
  }
  const auto prompt_tokens = static_cast<int64_t>(facts.prompt.size());
  const auto emitted_tokens = static_cast<int64_t>(facts.emitted.size());
  const int64_t reserved = prompt_tokens + facts.max_tokens - emitted_tokens;
  ASSIGN_OR_RETURN(Admission::Tenant * tenant, state.admission.Enter(facts.tenant, reserved, now));
  const bool under_way = emitted_tokens > 0;  // at another balancer: it does not queue anew
  const absl::Status room = state.MakeRoom(tenant, facts.priority, under_way, now, actions);
  if (!room.ok()) {
    state.admission.Leave(tenant, reserved, 0, now);
    return room;
  }

  const RequestKey key = state.next_key++;
  ForwardedRequest& request =
      *state.requests.emplace(key, MakeRequest(key, facts, tenant, now)).first->second;
  request.hashes = std::move(hashes);
  const int64_t position = state.admission.QueuedBefore(facts.priority);
  request.patience_ends =
      now + (served ? state.options.retry.patience : state.options.health.first_report_wait);
  if (under_way) {
    request.phase = RequestPhase::kMoving;
    state.moving.insert({facts.priority, key});
  } else {
    state.admission.Push(&request.waiting);
  }
  state.budget.OnRequest(now);
  ++state.counts.requests;
  state.Arm(request, now);
  state.Dispatch(now, actions);
  if (request.phase != RequestPhase::kRunning) {
    actions->push_back(QueueRequest{key, position});
  }
  return key;
}

void BalancerCore::OnCancel(RequestKey key, absl::Time now, Actions* actions) {
  ForwardedRequest* request = state_->Find(key);
  if (request == nullptr) {
    return;
  }
  state_->Fail(*request, WithReason(absl::CancelledError("the client cancelled"), kReasonByClient),
               now, actions);
  state_->Dispatch(now, actions);
}

// ---- Answers of attempts -----------------------------------------------------------------------

void BalancerCore::OnAccepted(RequestKey key, uint32_t attempt_number,
                              absl::string_view fingerprint, int64_t cached_tokens, absl::Time now,
                              Actions* actions) {
  ForwardedRequest* request = state_->Current(key, attempt_number);
  if (request == nullptr || request->attempt.accepted) {
    return;
  }
  Attempt& attempt = request->attempt;
  Replica& replica = *state_->replicas.Find(attempt.replica);
  replica.heard_at = now;
  if (!fingerprint.empty() && fingerprint != attempt.fingerprint) {
    attempt.fingerprint = std::string(fingerprint);
    replica.report.fingerprint = attempt.fingerprint;
  }
  if (request->needs_fingerprint && attempt.fingerprint != request->fingerprint) {
    state_->FailAttempt(*request,
                        {.kind = FailureKind::kRefused,
                         .status = WithReason(absl::FailedPreconditionError(
                                                  "the replica computes with another fingerprint"),
                                              kReasonResumeMismatch),
                         .retry_after = {},
                         .cancel = true},
                        now, actions);
    state_->Dispatch(now, actions);
    return;
  }
  attempt.accepted = true;
  State::UnbookWaiting(attempt, replica);
  if (attempt.guessed_tokens > 0) {
    constexpr double kNewest = 0.1;
    const double came_true = std::clamp(
        static_cast<double>(cached_tokens) / static_cast<double>(attempt.guessed_tokens), 0.0, 1.0);
    replica.prefix_credit += kNewest * (came_true - replica.prefix_credit);
  }
  request->last_progress = now;
  if (!request->accept_told) {
    request->accept_told = true;
    actions->push_back(AcceptRequest{key, attempt.replica});
  }
  state_->Dispatch(now, actions);
}

void BalancerCore::OnTokens(RequestKey key, uint32_t attempt_number, int64_t first_position,
                            absl::Span<const int32_t> token_ids, absl::Time now, Actions* actions) {
  ForwardedRequest* request = state_->Current(key, attempt_number);
  if (request == nullptr) {
    return;
  }
  Replica& replica = *state_->replicas.Find(request->attempt.replica);
  replica.heard_at = now;
  if (!request->attempt.accepted) {
    OnAccepted(key, attempt_number, "", request->attempt.guessed_tokens, now, actions);
    request = state_->Current(key, attempt_number);
    CHECK(request != nullptr);  // without a fingerprint it is taken as it comes
  }
  const bool first = request->progress() == 0;
  const int64_t next_position = request->log.size();
  const TokenVerdict verdict = request->log.Append(first_position, token_ids);
  switch (verdict) {
    case TokenVerdict::kEmpty:
      actions->push_back(DeliverTokens{key, first_position, 0});
      return;
    case TokenVerdict::kNew:
      break;
    case TokenVerdict::kRepeat:
    case TokenVerdict::kGap:
    case TokenVerdict::kTooMany:
      ++state_->counts.protocol_faults;
      state_->FailAttempt(
          *request,
          ProtocolFault(absl::StrFormat("replica %s sent %d tokens from position %d, wanted "
                                        "position %d and at most %d in all",
                                        replica.name, token_ids.size(), first_position,
                                        next_position, request->max_tokens)),
          now, actions);
      state_->Dispatch(now, actions);
      return;
  }
  request->last_progress = now;
  if (!request->needs_fingerprint) {
    request->needs_fingerprint = true;
    request->fingerprint = request->attempt.fingerprint;
  }
  state_->admission.Charge(request->waiting.tenant,
                           Admission::kGeneratedTokenCost * static_cast<double>(token_ids.size()));
  if (first) {
    replica.breaker.OnSuccess(request->attempt.probe);
    request->attempt.probe = false;
    if (request->gap_since != absl::InfinitePast()) {
      request->story.disruptions.back().gap = now - request->gap_since;
      request->gap_since = absl::InfinitePast();
    }
    state_->Arm(*request, now);
  }
  actions->push_back(DeliverTokens{key, first_position, static_cast<int64_t>(token_ids.size())});
}

void BalancerCore::OnFinished(RequestKey key, uint32_t attempt_number, int64_t generated_tokens,
                              absl::Time now, Actions* actions) {
  ForwardedRequest* request = state_->Current(key, attempt_number);
  if (request == nullptr) {
    return;
  }
  state_->replicas.Find(request->attempt.replica)->heard_at = now;
  if (generated_tokens >= 0 && generated_tokens != request->progress()) {
    ++state_->counts.protocol_faults;
    state_->FailAttempt(*request,
                        ProtocolFault(absl::StrFormat(
                            "a replica finished after %d tokens by its own count, but %d arrived",
                            generated_tokens, request->progress())),
                        now, actions);
  } else {
    state_->Finish(*request, now, actions);
  }
  state_->Dispatch(now, actions);
}

void BalancerCore::OnAttemptFailed(RequestKey key, uint32_t attempt_number,
                                   const absl::Status& status, absl::Duration retry_after,
                                   absl::Time now, Actions* actions) {
  ForwardedRequest* request = state_->Current(key, attempt_number);
  if (request == nullptr) {
    return;
  }
  state_->FailAttempt(
      *request, {.kind = ClassifyFailure(status), .status = status, .retry_after = retry_after},
      now, actions);
  state_->Dispatch(now, actions);
}

// ---- Time --------------------------------------------------------------------------------------

void BalancerCore::OnTick(absl::Time now, Actions* actions) {
  State& state = *state_;
  for (const auto& replica : state.replicas.all()) {
    if (!replica->attempts.empty() &&
        now - replica->heard_at > state.options.health.suspect_after) {
      state.FailAttemptsOf(
          *replica, UINT64_MAX,
          {.kind = FailureKind::kSilent,
           .status = WithReason(absl::UnavailableError(absl::StrFormat(
                                    "replica %s gives no sign of life", replica->name)),
                                kReasonReplicaLost),
           .retry_after = {},
           .cancel = true,
           .free = true},
          now, actions);
    }
  }
  while (!state.timers.empty() && state.timers.begin()->first <= now) {
    const RequestKey key = state.timers.begin()->second;
    ForwardedRequest* request = state.Find(key);
    const absl::Time fired = request->timer;
    state.OnTimer(*request, now, actions);
    request = state.Find(key);
    CHECK(request == nullptr || request->timer != fired);
  }
  state.Dispatch(now, actions);
}

absl::Time BalancerCore::NextTick() const {
  const State& state = *state_;
  absl::Time next = state.timers.empty() ? absl::InfiniteFuture() : state.timers.begin()->first;
  if (!state.moving.empty() || state.admission.queued() > 0) {
    next = std::min(next, state.last_dispatch + State::kQueueTick);
  }
  for (const auto& replica : state.replicas.all()) {
    if (!replica->attempts.empty()) {
      next = std::min(
          next, replica->heard_at + state.options.health.suspect_after + absl::Nanoseconds(1));
    }
  }
  return next;
}

// ---- Views -------------------------------------------------------------------------------------

void BalancerCore::Reconfigure(const BalancerOptions& options) {
  BalancerOptions& own = state_->options;
  own.pick = options.pick;
  own.health.stale_after = options.health.stale_after;
  own.admission.queued_requests_max = options.admission.queued_requests_max;
  const absl::Duration window = own.retry.window;  // the budget's slices are parts of it
  own.retry = options.retry;
  own.retry.window = window;
}

std::vector<ReplicaView> BalancerCore::Replicas(absl::Time now) const {
  const HealthOptions& health = state_->options.health;
  std::vector<ReplicaView> views;
  for (const auto& replica : state_->replicas.all()) {
    views.push_back({.key = replica->key,
                     .name = replica->name,
                     .state = std::string(ReplicaHealthName(replica->Health(health, now))),
                     .breaker = std::string(replica->breaker.state_name()),
                     .epoch = replica->report.epoch,
                     .fingerprint = replica->report.fingerprint,
                     .report_age = now - replica->reported_at,
                     .weight = replica->Weight(health, now),
                     .attempts = static_cast<int64_t>(replica->attempts.size()),
                     .attempts_waiting = replica->attempts_waiting,
                     .tokens_in_flight = replica->tokens_in_flight,
                     .report = replica->report});
  }
  return views;
}

std::optional<RequestView> BalancerCore::Find(RequestKey key) const {
  const ForwardedRequest* request = state_->Find(key);
  if (request == nullptr) {
    return std::nullopt;
  }
  return RequestView{.queued = request->phase != RequestPhase::kRunning,
                     .attempt = request->attempt.number,
                     .replica = request->attempt.replica,
                     .emitted_tokens = request->log.size()};
}

int64_t BalancerCore::live_requests() const {
  return static_cast<int64_t>(state_->requests.size());
}

int64_t BalancerCore::queued_requests() const {
  return state_->admission.queued() + static_cast<int64_t>(state_->moving.size());
}

BalancerCounts BalancerCore::counts() const { return state_->counts; }

}  // namespace trireme::balance
