#include "runtime/base/metric_catalogue.h"

namespace trireme {
namespace {

constexpr absl::string_view kServing = "replica, balancer";
constexpr absl::string_view kReplica = "replica";
constexpr absl::string_view kBalancer = "balancer";
constexpr absl::string_view kSupervisor = "supervisor";
constexpr absl::string_view kAll = "replica, balancer, supervisor";

constexpr MetricKind kCounter = MetricKind::kCounter;
constexpr MetricKind kGauge = MetricKind::kGauge;
constexpr MetricKind kHistogram = MetricKind::kHistogram;

}  // namespace

absl::Span<const MetricEntry> MetricCatalogue() {
  static const auto* const catalogue = new std::vector<MetricEntry>{
      {"trireme_build_info", kGauge, {"version"}, kAll, "1, with the version of the program"},
      {"trireme_requests_total",
       kCounter,
       {"outcome"},
       kServing,
       "Streams that ended, by outcome: ok, or the reason of the error (docs/errors.md)"},
      {"trireme_requests_open", kGauge, {}, kServing, "Streams that are open"},
      {"trireme_queue_seconds",
       kHistogram,
       {},
       kServing,
       "From arrival until a request left the queue"},
      {"trireme_prefill_seconds",
       kHistogram,
       {},
       kServing,
       "From leaving the queue to the first token"},
      {"trireme_ttft_seconds", kHistogram, {}, kServing, "From arrival to the first token"},
      {"trireme_tpot_seconds",
       kHistogram,
       {},
       kServing,
       "Time for each token after the first one, mean of a stream"},
      {"trireme_decode_seconds", kHistogram, {}, kServing, "From the first token to the end"},
      {"trireme_e2e_seconds", kHistogram, {}, kServing, "From arrival to the end"},
      {"trireme_prompt_tokens_total", kCounter, {}, kServing, "Prompt tokens of ended streams"},
      {"trireme_generated_tokens_total",
       kCounter,
       {},
       kServing,
       "Tokens generated for ended streams, by this process or through it"},
      {"trireme_cached_tokens_total",
       kCounter,
       {},
       kServing,
       "Prompt tokens that were found in the prefix cache"},
      {"trireme_recomputed_tokens_total",
       kCounter,
       {},
       kServing,
       "Tokens computed again after a preemption or a resume"},
      {"trireme_phase",
       kGauge,
       {"phase"},
       kServing,
       "1 for the phase it is in (starting, serving, draining, lost), else 0"},
      {"trireme_epoch", kGauge, {}, kReplica, "Epoch of this start; rises with each"},
      {"trireme_running_sequences", kGauge, {}, kServing, "Sequences in the batch"},
      {"trireme_waiting_requests", kGauge, {}, kServing, "Requests in the queue"},
      {"trireme_queue_tokens", kGauge, {}, kServing, "Prompt tokens not computed yet"},
      {"trireme_running_tokens", kGauge, {}, kServing, "Positions held in the KV cache"},
      {"trireme_kv_blocks", kGauge, {"state"}, kServing, "KV blocks: used, free"},
      {"trireme_kv_usage_ratio", kGauge, {}, kServing, "Used KV blocks over all"},
      {"trireme_preemptions_total",
       kCounter,
       {},
       kReplica,
       "Sequences that gave their KV blocks to others"},
      {"trireme_steps_total", kCounter, {}, kReplica, "Steps finished"},
      {"trireme_step_seconds",
       kGauge,
       {"percentile"},
       kReplica,
       "Time of the latest steps, percentiles 50 and 99"},
      {"trireme_prefill_tokens_per_second",
       kGauge,
       {},
       kReplica,
       "Prompt tokens computed a second, of the latest steps with prompts"},
      {"trireme_expert_busiest_ratio",
       kGauge,
       {"layer"},
       kReplica,
       "Of a mixture of experts: tokens of the layer's busiest expert since the start, over the "
       "mean "
       "of its experts"},
      {"trireme_attempts_total", kCounter, {}, kBalancer, "Attempts sent to replicas"},
      {"trireme_retries_total",
       kCounter,
       {},
       kBalancer,
       "Attempts after the first that were charged to the retry budget"},
      {"trireme_resumes_total",
       kCounter,
       {"reason"},
       kBalancer,
       "Moves of streams to another replica, by the reason of the loss"},
      {"trireme_shed_total", kCounter, {}, kBalancer, "Requests refused for want of room"},
      {"trireme_quarantined_total",
       kCounter,
       {},
       kBalancer,
       "Requests suspected of killing replicas"},
      {"trireme_stale_answers_total",
       kCounter,
       {},
       kBalancer,
       "Answers of replaced attempts that were dropped"},
      {"trireme_protocol_faults_total",
       kCounter,
       {},
       kBalancer,
       "Attempts that answered out of sequence"},
      {"trireme_reports_refused_total",
       kCounter,
       {},
       kBalancer,
       "Load reports that cannot be true"},
      {"trireme_breaker_state",
       kGauge,
       {"replica"},
       kBalancer,
       "0 closed, 1 half open, 2 open (ejected)"},
      {"trireme_replica_attempts",
       kGauge,
       {"replica"},
       kBalancer,
       "Attempts of this balancer that run on the replica"},
      {"trireme_replicas_ready",
       kGauge,
       {},
       kBalancer,
       "Replicas with fresh reports that take requests"},
      {"trireme_child_state",
       kGauge,
       {"child", "state"},
       kSupervisor,
       "1 for the state the replica or balancer is in, else 0"},
      {"trireme_child_epoch", kGauge, {"child"}, kSupervisor, "Epoch of the latest start"},
      {"trireme_restarts_total",
       kCounter,
       {"child", "code"},
       kSupervisor,
       "Starts after an end with this exit code"},
  };
  return *catalogue;
}

const MetricEntry* FindMetric(absl::string_view name) {
  for (const MetricEntry& entry : MetricCatalogue()) {
    if (entry.name == name) {
      return &entry;
    }
  }
  return nullptr;
}

absl::string_view MetricKindName(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kHistogram:
      return "histogram";
  }
  return "?";
}

}  // namespace trireme
