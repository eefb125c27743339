#include "runtime/balance/execute_messages.h"

#include "absl/strings/str_cat.h"
#include "engine.pb.h"
#include "runtime/base/error_reason.h"
#include "runtime/serve/wire_values.h"

namespace trireme::balance {
namespace {

ReplicaPhase PhaseOf(v1::ReplicaPhase phase) {
  switch (phase) {
    case v1::REPLICA_PHASE_SERVING:
      return ReplicaPhase::kServing;
    case v1::REPLICA_PHASE_DRAINING:
      return ReplicaPhase::kDraining;
    case v1::REPLICA_PHASE_LOST:
      return ReplicaPhase::kLost;
    default:
      return ReplicaPhase::kStarting;  // a phase that this build does not know takes no work either
  }
}

Priority PriorityOf(schedule::Priority priority) {
  switch (priority) {
    case schedule::Priority::kBatch:
      return Priority::kBatch;
    case schedule::Priority::kStandard:
      return Priority::kStandard;
    case schedule::Priority::kInteractive:
      return Priority::kInteractive;
  }
  return Priority::kStandard;
}

DisruptionPolicy PolicyOf(schedule::DisruptionPolicy policy) {
  switch (policy) {
    case schedule::DisruptionPolicy::kResume:
      return DisruptionPolicy::kResume;
    case schedule::DisruptionPolicy::kExactOrFail:
      return DisruptionPolicy::kExactOrFail;
    case schedule::DisruptionPolicy::kFail:
      return DisruptionPolicy::kFail;
  }
  return DisruptionPolicy::kResume;
}

}  // namespace

LoadReport LoadReportOf(const v1::LoadReport& wire) {
  LoadReport report;
  report.epoch = wire.epoch();
  report.report_seq = wire.report_seq();
  report.phase = wire.draining() && wire.phase() == v1::REPLICA_PHASE_SERVING
                     ? ReplicaPhase::kDraining
                     : PhaseOf(wire.phase());
  report.running_sequences = wire.running_sequences();
  report.waiting_requests = wire.waiting_requests();
  report.queued_tokens = wire.queued_tokens();
  report.running_tokens = wire.running_tokens();
  report.blocks_total = wire.kv_blocks_total();
  report.blocks_free = wire.kv_blocks_free();
  report.blocks_reclaimable = wire.kv_blocks_reclaimable();
  report.prefill_tokens_per_second = wire.prefill_tokens_per_second();
  report.step_time_p50 = serve::DurationOf(wire.step_time_p50());
  report.weight = wire.weight();
  report.new_requests_max = wire.new_requests_max();
  report.fingerprint = wire.fingerprint();
  return report;
}

RequestFacts FactsOf(const schedule::Request& request) {
  return {.tenant = request.delivery.tenant,
          .prompt = request.prompt,
          .emitted = request.emitted,
          .max_tokens = request.stopping.max_tokens,
          .deadline = request.deadline,
          .priority = PriorityOf(request.delivery.priority),
          .disruption_policy = PolicyOf(request.delivery.disruption_policy),
          .explain = request.delivery.explain};
}

void SetExecuteRequest(const schedule::Request& request, const AttemptFacts& attempt,
                       v1::ExecuteRequest* out) {
  out->set_request_id(attempt.request_id);
  out->set_attempt(attempt.attempt);
  out->set_epoch(attempt.epoch);
  out->set_lease(attempt.lease);
  out->mutable_token_ids()->Add(request.prompt.begin(), request.prompt.end());
  v1::ChoiceState* choice = out->add_choices();
  choice->set_choice(request.choice);
  choice->mutable_emitted()->Add(attempt.emitted.begin(), attempt.emitted.end());
  out->set_seed(request.sampling.seed);
  serve::SetSampling(request.sampling, out->mutable_sampling());
  serve::SetStopping(request.stopping, out->mutable_stopping());
  out->set_tenant(request.delivery.tenant);
  if (attempt.budget_left != absl::InfiniteDuration()) {
    serve::SetDuration(attempt.budget_left, out->mutable_budget_left());
  }
  out->set_want_text(request.want_text);
  out->set_want_logprobs(request.want_logprobs);
}

absl::StatusOr<engine::Ending> EndingOf(const v1::ChoiceFinished& wire) {
  engine::Ending ending;
  switch (wire.reason()) {
    case v1::FINISH_REASON_EOS:
      ending.reason = schedule::FinishReason::kEos;
      break;
    case v1::FINISH_REASON_STOP_STRING:
      ending.reason = schedule::FinishReason::kStopString;
      break;
    case v1::FINISH_REASON_STOP_TOKEN:
      ending.reason = schedule::FinishReason::kStopToken;
      break;
    case v1::FINISH_REASON_MAX_TOKENS:
      ending.reason = schedule::FinishReason::kMaxTokens;
      break;
    case v1::FINISH_REASON_CONTEXT_FULL:
      ending.reason = schedule::FinishReason::kContextFull;
      break;
    default:
      return WithReason(
          absl::InternalError(absl::StrCat("the replica ends with reason ", wire.reason(),
                                           ", which this build does not know")),
          kReasonBug);
  }
  ending.stop_string = wire.stop_string();
  ending.stop_token_id = wire.has_stop_token_id() ? wire.stop_token_id() : -1;
  return ending;
}

}  // namespace trireme::balance
