// Starts, ends and moves attempts.
#include <algorithm>
#include <cmath>
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
constexpr absl::Duration kPauseMin = absl::Milliseconds(50);  // of a replica that is full
constexpr absl::Duration kPauseMax = absl::Seconds(5);
constexpr absl::Duration kRefusedPause = absl::Milliseconds(500);  // its reports tell more by then
constexpr absl::Duration kBackoff = absl::Milliseconds(25);  // before the first retry; doubles

absl::Status Unavailable(absl::string_view reason, std::string message) {
  return WithRetryDelay(WithReason(absl::UnavailableError(message), reason), kRetryDelay);
}

absl::Status PastDeadline(const ForwardedRequest& request) {
  if (request.attempt.number == 0) {
    return WithReason(
        absl::DeadlineExceededError("the deadline passed in the balancer's queue; give more time"),
        kReasonInQueue);
  }
  return WithReason(absl::DeadlineExceededError(absl::StrFormat(
                        "the deadline passed after %d tokens; give more time or ask for fewer",
                        request.log.size())),
                    kReasonRunning);
}

// The reason that a disruption is told with.
absl::string_view DisruptionReason(const AttemptFailure& failure) {
  const absl::string_view told = ReasonOf(failure.status);
  return told.empty() ? kReasonReplicaLost : told;
}

}  // namespace

void BalancerCore::State::Dispatch(absl::Time now, Actions* actions) {
  last_dispatch = now;
  if (moving.empty() && admission.queued() == 0) {
    return;
  }
  if (!replicas.AnyRoom(now)) {
    return;
  }
  const std::vector<std::pair<Priority, RequestKey>> under_way(moving.begin(), moving.end());
  for (const auto& [priority, key] : under_way) {
    ForwardedRequest* request = Find(key);
    if (request->not_before <= now) {
      TryStart(*request, now, actions);
    }
  }
  while (const Admission::Waiting* next = admission.Next()) {
    ForwardedRequest* request = Find(next->request);
    CHECK(request != nullptr);
    if (!TryStart(*request, now, actions)) {
      break;
    }
  }
}

bool BalancerCore::State::TryStart(ForwardedRequest& request, absl::Time now, Actions* actions) {
  if (request.charge_to_budget && !budget.HasRoom(now)) {
    return false;
  }
  const std::vector<Candidate> candidates =
      replicas.Candidates({.prefix_blocks = request.hashes.blocks,
                           .needs_fingerprint = request.needs_fingerprint,
                           .fingerprint = request.fingerprint,
                           .avoided = request.avoided},
                          now);
  const int64_t cost = request.prompt_tokens + request.log.size();
  const int64_t output =
      std::min<int64_t>(request.max_tokens - request.log.size(), std::llround(mean_output_tokens));
  const PickRequest pick = {.affinity = request.hashes.affinity,
                            .prompt_tokens = cost,
                            .load_tokens = cost + std::max<int64_t>(output, 1),
                            .expected_output_tokens = std::llround(mean_output_tokens),
                            .explain = request.explain};
  const std::optional<Picked> picked = Pick(pick, candidates, options.pick, &random);
  if (!picked.has_value()) {
    return false;
  }
  request.attempt.load_tokens = pick.load_tokens;
  Start(request, candidates[picked->index], *picked, now, actions);
  return true;
}

void BalancerCore::State::Start(ForwardedRequest& request, const Candidate& candidate,
                                const Picked& picked, absl::Time now, Actions* actions) {
  Replica& replica = *replicas.Find(candidate.key);
  if (request.phase == RequestPhase::kQueued) {
    admission.Remove(request.waiting);
    admission.Dispatched(request.waiting.tenant);
  } else {
    moving.erase({request.waiting.priority, request.key});
  }
  if (request.attempt.number == 0) {
    admission.Charge(request.waiting.tenant, static_cast<double>(request.prompt_tokens));
  } else {
    CountStartOfMove(request, replica.key, now);
  }
  request.phase = RequestPhase::kRunning;
  request.charge_to_budget = false;
  request.story.queued += now - request.waits_since;
  const uint32_t number = request.attempt.number + 1;
  const int64_t known = request.prompt_tokens + request.log.size();
  request.attempt = {
      .number = number,
      .replica = replica.key,
      .epoch = replica.report.epoch,
      .fingerprint = replica.report.fingerprint,
      .started = now,
      .reports_seen = replica.reports,
      .probe = replica.breaker.Start(now),
      .first_position = request.log.size(),
      .uncached_tokens = std::max<int64_t>(known - candidate.cached_tokens, 1),
      .guessed_tokens = replica.prefixes.Match(request.hashes.blocks) * kHashTokens,
      .load_tokens = request.attempt.load_tokens,
  };
  request.last_progress = now;
  request.story.attempts = number;
  replica.attempts.insert(request.key);
  ++replica.attempts_waiting;
  ++replica.requests_sent;
  replica.tokens_waiting += request.attempt.uncached_tokens;
  replica.tokens_sent += request.attempt.uncached_tokens;
  replica.tokens_in_flight += request.attempt.load_tokens;
  replica.prefixes.Insert(request.hashes.blocks);
  ++counts.attempts;
  Arm(request, now);
  actions->push_back(StartAttempt{.request = request.key,
                                  .replica = replica.key,
                                  .attempt = number,
                                  .epoch = replica.report.epoch,
                                  .emitted = request.log.tokens(),
                                  .explanation = picked.explanation});
}

void BalancerCore::State::CountStartOfMove(ForwardedRequest& request, ReplicaKey to,
                                           absl::Time now) {
  if (request.charge_to_budget) {
    CHECK(budget.TakeRetry(now));
    ++counts.retries_charged;
  } else {
    ++counts.moves_after_loss;
  }
  request.story.recomputed_tokens += request.log.size();
  request.story.disruptions.back().to = to;
}

void BalancerCore::State::Unbook(ForwardedRequest& request) {
  Replica* replica = replicas.Find(request.attempt.replica);
  CHECK(replica != nullptr);
  CHECK_EQ(replica->attempts.erase(request.key), 1u);
  replica->tokens_in_flight -= request.attempt.load_tokens;
  if (!request.attempt.accepted) {
    UnbookWaiting(request.attempt, *replica);
    if (request.attempt.reports_seen == replica->reports) {
      replica->tokens_sent -= request.attempt.uncached_tokens;
    }
  }
}

void BalancerCore::State::UnbookWaiting(const Attempt& attempt, Replica& replica) {
  --replica.attempts_waiting;
  replica.tokens_waiting -= attempt.uncached_tokens;
  if (attempt.reports_seen == replica.reports) {
    --replica.requests_sent;
  }
}

void BalancerCore::State::BookVerdict(ForwardedRequest& request, Replica& replica,
                                      const AttemptFailure& failure, absl::Time now) {
  if (BlamesReplica(failure.kind)) {
    replica.breaker.OnFailure(request.attempt.probe, replicas.MayEject(replica, now), now, &random);
  } else {
    replica.breaker.OnNoVerdict(request.attempt.probe);
  }
  switch (failure.kind) {
    case FailureKind::kLost:
      replica.lost = replica.lost || request.attempt.epoch == replica.report.epoch;
      break;
    case FailureKind::kOverloaded:
      replica.set_aside_until = now + Jitter(std::clamp(failure.retry_after, kPauseMin, kPauseMax));
      break;
    case FailureKind::kRefused:
      replica.set_aside_until = now + Jitter(kRefusedPause);
      break;
    case FailureKind::kFault:
    case FailureKind::kSilent:
      if (std::find(request.avoided.begin(), request.avoided.end(), replica.key) ==
          request.avoided.end()) {
        request.avoided.push_back(replica.key);
      }
      break;
    case FailureKind::kRequest:
      break;
  }
}

absl::Status BalancerCore::State::CountMove(ForwardedRequest& request,
                                            const AttemptFailure& failure) {
  if (failure.kind == FailureKind::kRefused || failure.kind == FailureKind::kOverloaded) {
    ++request.refusals;  // patience, deadline and budget bound these
    return absl::OkStatus();
  }
  const bool lost = failure.kind == FailureKind::kLost || failure.free;
  int& moves = lost || request.progress() > 0 ? request.resumes : request.retries;
  const int moves_max = &moves == &request.resumes ? options.retry.resumes_per_request
                                                   : options.retry.retries_per_request;
  if (++moves <= moves_max) {
    return absl::OkStatus();
  }
  if (failure.kind == FailureKind::kFault) {
    return failure.status;
  }
  return Unavailable(kReasonReplicaLost,
                     absl::StrFormat("given up after %d attempts; the last one: %s",
                                     request.attempt.number, failure.status.message()));
}

// One death counts once, however many attempts find it; a replica that is dying already refuses
// attempts that it never began; and a replica that goes on in its epoch had lost a connection only.
bool BalancerCore::State::CountDeath(ForwardedRequest& request, const AttemptFailure& failure) {
  const Attempt& attempt = request.attempt;
  if (failure.kind != FailureKind::kLost ||
      (ReasonOf(failure.status) == kReasonRankLost && !attempt.accepted)) {
    return false;
  }
  const Replica* before = replicas.Find(request.suspicion.last().replica);
  if (before != nullptr && !before->lost &&
      before->report.epoch == request.suspicion.last().epoch) {
    request.suspicion.ForgiveLast();
  }
  return request.suspicion.NoteDeath(
      {.replica = attempt.replica, .epoch = attempt.epoch, .tokens = request.log.size()},
      attempt.accepted);
}

absl::Status BalancerCore::State::MayMove(ForwardedRequest& request, const AttemptFailure& failure,
                                          absl::Time now) {
  if (failure.kind == FailureKind::kRequest) {
    return failure.status;
  }
  if (CountDeath(request, failure) && request.suspicion.IsPoison()) {
    quarantine.Add(request.hashes.prompt, now + options.retry.quarantine);
    ++counts.quarantined;
    return WithReason(absl::InternalError(absl::StrFormat(
                          "replicas died under the request at token %d, the last one in epoch %d; "
                          "it is not tried "
                          "again: %s",
                          request.log.size(), request.attempt.epoch, failure.status.message())),
                      kReasonPoisonSuspect);
  }
  if (now >= request.deadline) {
    return PastDeadline(request);
  }
  if (request.policy == DisruptionPolicy::kFail && request.delivered() > 0) {
    return Unavailable(
        kReasonReplicaLost,
        absl::StrFormat("the replica was lost after %d tokens, and the request asked "
                        "to fail then: %s",
                        request.log.size(), failure.status.message()));
  }
  RETURN_IF_ERROR(CountMove(request, failure));
  RETURN_IF_ERROR(MayWaitForBudget(request, failure, now));
  return CannotContinue(request, now);
}

// Who has to wait for the budget holds memory and a client. A request that has got nothing yet and
// met a fault is told so at once, which is what keeps a storm of retries small.
absl::Status BalancerCore::State::MayWaitForBudget(const ForwardedRequest& request,
                                                   const AttemptFailure& failure, absl::Time now) {
  if (!request.charge_to_budget || request.delivered() > 0 || budget.HasRoom(now)) {
    return absl::OkStatus();
  }
  const bool fault = failure.kind == FailureKind::kFault || failure.kind == FailureKind::kSilent;
  if (!fault && static_cast<int64_t>(moving.size()) <= options.admission.queued_requests_max) {
    return absl::OkStatus();
  }
  if (failure.kind == FailureKind::kFault) {
    return failure.status;
  }
  return Unavailable(
      kReasonReplicaLost,
      absl::StrFormat("too many requests are being retried to try this one again: %s",
                      failure.status.message()));
}

absl::Status BalancerCore::State::CannotContinue(const ForwardedRequest& request, absl::Time now) {
  if (!request.needs_fingerprint) {
    return absl::OkStatus();
  }
  const std::string message = absl::StrFormat(
      "%d tokens came from fingerprint %s and no replica is left that computes alike; start again",
      request.log.size(), request.fingerprint);
  if (!replicas.MayHaveFingerprint(request.fingerprint)) {
    return Unavailable(kReasonExactResumeImpossible, message);
  }
  if (request.policy == DisruptionPolicy::kExactOrFail) {
    const std::vector<Candidate> serving =
        replicas.Candidates({.needs_fingerprint = true, .fingerprint = request.fingerprint}, now);
    const bool any = std::any_of(serving.begin(), serving.end(), [&](const Candidate& candidate) {
      return replicas.Find(candidate.key)->report.fingerprint == request.fingerprint;
    });
    if (!any) {
      return Unavailable(kReasonExactResumeImpossible, message);
    }
  }
  return absl::OkStatus();
}

void BalancerCore::State::FailAttempt(ForwardedRequest& request, const AttemptFailure& failure,
                                      absl::Time now, Actions* actions) {
  CHECK(request.phase == RequestPhase::kRunning);
  const Attempt attempt = request.attempt;
  Replica& replica = *replicas.Find(attempt.replica);
  if (failure.cancel) {
    actions->push_back(CancelAttempt{request.key, attempt.replica, attempt.number});
  }
  Unbook(request);
  BookVerdict(request, replica, failure, now);
  request.phase = RequestPhase::kMoving;
  moving.insert({request.waiting.priority, request.key});
  const bool lost_at_work = failure.kind == FailureKind::kLost && attempt.accepted;
  const bool first_of_epoch =
      (failure.kind == FailureKind::kLost || failure.kind == FailureKind::kRefused) &&
      replica.MovesFree(attempt.started, now);
  request.charge_to_budget = !(failure.free || lost_at_work || first_of_epoch);
  const absl::Status verdict = MayMove(request, failure, now);
  if (!verdict.ok()) {
    Fail(request, verdict, now, actions);
    return;
  }
  if (request.progress() > 0 || attempt.number == 1) {
    request.patience_ends = now + options.retry.patience;
  }
  const bool at_once = failure.free || failure.kind == FailureKind::kLost;
  const int doublings = std::min(request.retries + request.refusals, 6);
  request.not_before = at_once ? now : now + Jitter(kBackoff * std::ldexp(1.0, doublings));
  request.waits_since = now;
  if (request.gap_since == absl::InfinitePast()) {
    request.gap_since = request.last_progress;
  }
  request.story.disruptions.push_back(
      {.reason = DisruptionReason(failure), .from = attempt.replica, .to = 0, .gap = {}});
  Arm(request, now);
}

void BalancerCore::State::FailAttemptsOf(Replica& replica, uint64_t epoch,
                                         const AttemptFailure& failure, absl::Time now,
                                         Actions* actions) {
  const std::vector<RequestKey> keys(replica.attempts.begin(), replica.attempts.end());
  for (const RequestKey key : keys) {
    ForwardedRequest* request = Find(key);
    if (request->attempt.epoch < epoch) {
      FailAttempt(*request, failure, now, actions);
    }
  }
}

void BalancerCore::State::Finish(ForwardedRequest& request, absl::Time now, Actions* actions) {
  Replica& replica = *replicas.Find(request.attempt.replica);
  replica.breaker.OnSuccess(request.attempt.probe);
  Unbook(request);
  constexpr double kNewest = 0.02;
  mean_output_tokens += kNewest * (static_cast<double>(request.log.size()) - mean_output_tokens);
  ++counts.finished;
  actions->push_back(FinishRequest{request.key, std::move(request.story)});
  Erase(request, now);
}

void BalancerCore::State::Fail(ForwardedRequest& request, const absl::Status& status,
                               absl::Time now, Actions* actions) {
  switch (request.phase) {
    case RequestPhase::kQueued:
      admission.Remove(request.waiting);
      break;
    case RequestPhase::kRunning:
      actions->push_back(
          CancelAttempt{request.key, request.attempt.replica, request.attempt.number});
      replicas.Find(request.attempt.replica)->breaker.OnNoVerdict(request.attempt.probe);
      Unbook(request);
      break;
    case RequestPhase::kMoving:
      moving.erase({request.waiting.priority, request.key});
      break;
  }
  ++counts.failed;
  actions->push_back(FailRequest{request.key, status, std::move(request.story)});
  Erase(request, now);
}

void BalancerCore::State::Erase(ForwardedRequest& request, absl::Time now) {
  const int64_t reserved = request.prompt_tokens + request.max_tokens - request.delivered_before;
  const int64_t used =
      request.attempt.number == 0 ? 0 : request.prompt_tokens + request.delivered();
  admission.Leave(request.waiting.tenant, reserved, used, now);
  timers.erase({request.timer, request.key});
  requests.erase(request.key);
}

void BalancerCore::State::Arm(ForwardedRequest& request, absl::Time now) {
  absl::Time timer = request.deadline;
  if (request.phase == RequestPhase::kRunning) {
    const absl::Duration timeout = request.progress() > 0 ? options.health.next_token_timeout
                                                          : options.health.first_token_timeout;
    timer = std::min(timer, request.last_progress + timeout);
  } else {
    timer = std::min(timer, request.patience_ends);
    if (request.not_before > now) {
      timer = std::min(timer, request.not_before);
    }
  }
  if (timer == request.timer) {
    return;
  }
  timers.erase({request.timer, request.key});
  request.timer = timer;
  if (timer != absl::InfiniteFuture()) {
    timers.insert({timer, request.key});
  }
}

void BalancerCore::State::OnTimer(ForwardedRequest& request, absl::Time now, Actions* actions) {
  if (now >= request.deadline) {
    Fail(request, PastDeadline(request), now, actions);
    return;
  }
  if (request.phase == RequestPhase::kQueued && now >= request.patience_ends) {
    if (!replicas.AnyServing(now)) {
      Fail(request, NobodyServes(now), now, actions);
      return;
    }
    request.patience_ends = now + options.retry.patience;  // it is its turn that it waits for
  }
  if (request.phase == RequestPhase::kMoving && now >= request.patience_ends) {
    absl::Status status = request.needs_fingerprint
                              ? Unavailable(kReasonExactResumeImpossible,
                                            "no replica could go on with the request in time")
                              : NobodyServes(now);
    Fail(request, status, now, actions);
    return;
  }
  if (request.phase == RequestPhase::kRunning) {
    const bool began = request.progress() > 0;
    const absl::Duration timeout =
        began ? options.health.next_token_timeout : options.health.first_token_timeout;
    if (now >= request.last_progress + timeout) {
      FailAttempt(request,
                  {.kind = FailureKind::kSilent,
                   .status = absl::UnavailableError(absl::StrFormat(
                       "the replica brought no token in %s", absl::FormatDuration(timeout))),
                   .retry_after = {},
                   .cancel = true},
                  now, actions);
      return;
    }
  }
  Arm(request, now);
}

absl::Status BalancerCore::State::NobodyServes(absl::Time now) {
  bool starting = false;
  bool draining = false;
  for (const auto& replica : replicas.all()) {
    const ReplicaHealth health = replica->Health(options.health, now);
    starting = starting || health == ReplicaHealth::kStarting;
    draining = draining || health == ReplicaHealth::kDraining;
  }
  const auto count = static_cast<int64_t>(replicas.all().size());
  if (starting) {
    return Unavailable(kReasonStarting,
                       absl::StrFormat("no replica serves yet: of %d, some are starting", count));
  }
  if (draining) {
    return Unavailable(
        kReasonDraining,
        absl::StrFormat("no replica takes new work: of %d, some are draining", count));
  }
  return Unavailable(kReasonNoReplica,
                     absl::StrFormat("none of %d replicas can be reached; try again", count));
}

}  // namespace trireme::balance
