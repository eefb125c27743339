#include "runtime/serve/wire_values.h"

#include <algorithm>

#include "engine.pb.h"
#include "inference.pb.h"

namespace trireme::serve {
namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

v1::FinishReason WireReason(schedule::FinishReason reason) {
  switch (reason) {
    case schedule::FinishReason::kEos:
      return v1::FINISH_REASON_EOS;
    case schedule::FinishReason::kStopString:
      return v1::FINISH_REASON_STOP_STRING;
    case schedule::FinishReason::kStopToken:
      return v1::FINISH_REASON_STOP_TOKEN;
    case schedule::FinishReason::kMaxTokens:
      return v1::FINISH_REASON_MAX_TOKENS;
    case schedule::FinishReason::kContextFull:
      return v1::FINISH_REASON_CONTEXT_FULL;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

v1::ReplicaPhase WirePhase(Phase phase) {
  switch (phase) {
    case Phase::kStarting:
      return v1::REPLICA_PHASE_STARTING;
    case Phase::kServing:
      return v1::REPLICA_PHASE_SERVING;
    case Phase::kDraining:
      return v1::REPLICA_PHASE_DRAINING;
    case Phase::kLost:
      return v1::REPLICA_PHASE_LOST;
  }
  return v1::REPLICA_PHASE_UNSPECIFIED;
}

void SetLimits(const ReplicaFacade& replica, v1::Limits* out) {
  const RequestLimits& limits = replica.model.limits;
  out->set_request_bytes_max(limits.request_bytes_max);
  out->set_prompt_tokens_max(replica.model.context_length - 1);
  out->set_prompt_bytes_max(limits.prompt_bytes_max);
  out->set_messages_max(limits.messages_max);
  out->set_tools_max(limits.tools_max);
  out->set_tools_bytes_max(limits.tools_bytes_max);
  out->set_choices_max(limits.choices_max);
  out->set_stop_strings_max(limits.stop_strings_max);
  out->set_stop_string_bytes_max(limits.stop_string_bytes_max);
  out->set_stop_token_ids_max(limits.stop_token_ids_max);
  out->set_request_id_bytes_max(limits.request_id_bytes_max);
  out->set_trace_tags_max(limits.trace_tags_max);
  out->set_queued_requests_max(replica.queued_requests_max);
  for (const std::string& name : replica.model.template_variables) {
    out->add_template_variables(name);
  }
}

void SetLatency(const RequestLatency& latency, v1::RequestLatency* out) {
  out->set_streams(latency.streams);
  SetDuration(latency.first_token_p50, out->mutable_first_token_p50());
  SetDuration(latency.first_token_p99, out->mutable_first_token_p99());
  SetDuration(latency.token_p50, out->mutable_token_p50());
  SetDuration(latency.token_p99, out->mutable_token_p99());
}

}  // namespace

void SetDuration(absl::Duration value, google::protobuf::Duration* out) {
  const int64_t nanoseconds = absl::ToInt64Nanoseconds(value);
  out->set_seconds(nanoseconds / kNanosecondsPerSecond);
  out->set_nanos(static_cast<int32_t>(nanoseconds % kNanosecondsPerSecond));
}

absl::Duration DurationOf(const google::protobuf::Duration& value) {
  return absl::Seconds(value.seconds()) + absl::Nanoseconds(value.nanos());
}

void SetChoiceFinished(const schedule::Request& request, const engine::Ending& ending,
                       v1::ChoiceFinished* out) {
  out->set_choice(request.choice);
  out->set_reason(WireReason(ending.reason));
  out->set_stop_string(ending.stop_string);
  if (ending.stop_token_id >= 0) {
    out->set_stop_token_id(ending.stop_token_id);
  }
}

void SetUsage(absl::Span<const engine::Ending> endings, v1::Usage* out) {
  int64_t generated_tokens = 0;
  int64_t recomputed_tokens = 0;
  for (const engine::Ending& ending : endings) {
    generated_tokens += ending.usage.generated_tokens;
    recomputed_tokens += ending.usage.recomputed_tokens;
    out->add_generated_tokens_per_choice(ending.usage.generated_tokens);
  }
  out->set_generated_tokens(generated_tokens);
  out->set_recomputed_tokens(recomputed_tokens);
  if (!endings.empty()) {
    out->set_prompt_tokens(endings[0].usage.prompt_tokens);
    out->set_cached_tokens(endings[0].usage.cached_tokens);
  }
}

void SetTimings(absl::Span<const engine::Ending> endings, v1::Timings* out) {
  engine::Timings longest;
  for (const engine::Ending& ending : endings) {
    longest.queue = std::max(longest.queue, ending.timings.queue);
    longest.first_token = std::max(longest.first_token, ending.timings.first_token);
    longest.total = std::max(longest.total, ending.timings.total);
  }
  SetDuration(longest.queue, out->mutable_queue());
  SetDuration(longest.first_token, out->mutable_first_token());
  SetDuration(longest.total, out->mutable_total());
  SetDuration(std::max(longest.first_token - longest.queue, absl::ZeroDuration()),
              out->mutable_prefill());
  SetDuration(std::max(longest.total - longest.first_token, absl::ZeroDuration()),
              out->mutable_decode());
}

void SetDisruptions(absl::Span<const engine::Ending> endings, v1::Finished* out) {
  for (const engine::Ending& ending : endings) {
    for (const engine::Disruption& disruption : ending.route.disruptions) {
      v1::Disruption* wire = out->add_disruptions();
      wire->set_reason(disruption.reason);
      SetDuration(disruption.gap, wire->mutable_gap());
      wire->set_from_replica(disruption.from_replica);
      wire->set_to_replica(disruption.to_replica);
    }
  }
}

void SetSampling(const sample::SamplingOptions& sampling, v1::Sampling* out) {
  out->set_temperature(sampling.temperature);
  out->set_top_p(sampling.top_p);
  out->set_min_p(sampling.min_p);
  if (sampling.top_k > 0) {
    out->set_top_k(sampling.top_k);
  }
}

void SetStopping(const schedule::StoppingOptions& stopping, v1::Stopping* out) {
  out->set_max_tokens(stopping.max_tokens);
  out->set_ignore_eos(stopping.ignore_eos);
  for (const std::string& text : stopping.stop_strings) {
    out->add_stop_strings(text);
  }
  for (const int32_t id : stopping.stop_token_ids) {
    out->add_stop_token_ids(id);
  }
}

void SetModelInfo(const ReplicaFacade& replica, v1::ModelInfo* out) {
  const ModelInfo& model = replica.model;
  out->set_id(model.id);
  out->set_family(model.family);
  out->set_context_length(model.context_length);
  out->set_vocabulary_size(model.vocabulary_size);
  if (model.bos_token_id.has_value()) {
    out->set_bos_token_id(*model.bos_token_id);
  }
  for (const int32_t id : model.eos_token_ids) {
    out->add_eos_token_ids(id);
  }
  out->set_template_hash(model.template_hash);
  out->set_fingerprint(model.fingerprint);
  SetLimits(replica, out->mutable_limits());
  out->mutable_capabilities()->set_chat(replica.tokenizer != nullptr &&
                                        replica.chat_template != nullptr);
  SetSampling(model.default_sampling, out->mutable_default_sampling());
}

void SetLoadReport(const ReplicaFacade* replica, Phase phase, const RequestLatency& latency,
                   v1::LoadReport* out) {
  out->set_phase(WirePhase(phase));
  out->set_weight(1);
  out->set_draining(phase == Phase::kDraining);
  SetLatency(latency, out->mutable_request_latency());
  if (replica == nullptr) {
    return;
  }
  const engine::Load load = replica->controller->load();
  out->set_epoch(replica->epoch);
  out->set_fingerprint(replica->model.fingerprint);
  out->set_running_sequences(load.running_sequences);
  out->set_waiting_requests(load.waiting_requests);
  out->set_queued_tokens(load.queued_tokens);
  out->set_running_tokens(load.running_tokens);
  out->set_kv_blocks_total(load.blocks_total);
  out->set_kv_blocks_free(load.blocks_free);
  out->set_prefill_tokens_per_second(load.prefill_tokens_per_second);
  SetDuration(load.step_time_p50, out->mutable_step_time_p50());
  SetDuration(load.step_time_p99, out->mutable_step_time_p99());
  out->set_step(load.step);
  out->set_straggler_ratio(1);
  out->set_draining(load.draining || phase == Phase::kDraining);
  out->set_new_requests_max(
      phase == Phase::kServing
          ? std::max<int64_t>(replica->queued_requests_max - load.waiting_requests, 0)
          : 0);
}

}  // namespace trireme::serve
