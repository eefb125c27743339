#include "runtime/serve/service_metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace trireme::serve {
namespace {

constexpr std::pair<Phase, const char*> kPhases[] = {{Phase::kStarting, "starting"},
                                                     {Phase::kServing, "serving"},
                                                     {Phase::kDraining, "draining"},
                                                     {Phase::kLost, "lost"}};

}  // namespace

ServiceMetrics::ServiceMetrics(Metrics* metrics, Door* door, std::function<StatusSnapshot()> status)
    : metrics_(metrics),
      door_(*door),
      status_(std::move(status)),
      hook_(metrics == nullptr ? ScrapeHook() : metrics->OnScrape([this] { Refresh(); })) {}

void ServiceMetrics::Refresh() {
  for (const auto& [phase, name] : kPhases) {
    metrics_->Gauge("trireme_phase", {{"phase", name}}).Set(door_.phase() == phase ? 1 : 0);
  }
  Set("trireme_requests_open", door_.live_calls().count());
  if (const ReplicaFacade* replica = door_.replica(); replica != nullptr) {
    const engine::Load load = replica->controller->load();
    ReadLoad(load);
    if (!replica->model.is_balanced) {
      Set("trireme_epoch", static_cast<int64_t>(replica->epoch));
      ReadSteps(load);
      ReadExperts();
    }
  }
}

void ServiceMetrics::ReadLoad(const engine::Load& load) {
  Set("trireme_running_sequences", load.running_sequences);
  Set("trireme_waiting_requests", load.waiting_requests);
  Set("trireme_queue_tokens", load.queued_tokens);
  Set("trireme_running_tokens", load.running_tokens);
  const int64_t used = load.blocks_total - load.blocks_free;
  metrics_->Gauge("trireme_kv_blocks", {{"state", "used"}}).Set(static_cast<double>(used));
  metrics_->Gauge("trireme_kv_blocks", {{"state", "free"}})
      .Set(static_cast<double>(load.blocks_free));
  if (load.blocks_total > 0) {
    metrics_->Gauge("trireme_kv_usage_ratio")
        .Set(static_cast<double>(used) / static_cast<double>(load.blocks_total));
  }
  metrics_->Gauge("trireme_prefill_tokens_per_second").Set(load.prefill_tokens_per_second);
}

void ServiceMetrics::ReadSteps(const engine::Load& load) {
  metrics_->Gauge("trireme_step_seconds", {{"percentile", "50"}})
      .Set(absl::ToDoubleSeconds(load.step_time_p50));
  metrics_->Gauge("trireme_step_seconds", {{"percentile", "99"}})
      .Set(absl::ToDoubleSeconds(load.step_time_p99));
  Advance("trireme_steps_total", static_cast<int64_t>(load.step), &steps_);
  Advance("trireme_preemptions_total", load.preemptions, &preemptions_);
}

void ServiceMetrics::ReadExperts() {
  if (status_ == nullptr) {
    return;
  }
  for (const ExpertLayerSnapshot& layer : status_().expert_layers) {
    metrics_->Gauge("trireme_expert_busiest_ratio", {{"layer", absl::StrCat(layer.layer)}})
        .Set(layer.busiest_ratio);
  }
}

void ServiceMetrics::Set(const char* name, int64_t value) {
  metrics_->Gauge(name).Set(static_cast<double>(value));
}

// A counter that somebody else counts: grows by what came since the last reading.
void ServiceMetrics::Advance(const char* name, int64_t value, int64_t* last) {
  metrics_->Counter(name).Increment(static_cast<double>(value - *last));
  *last = value;
}

}  // namespace trireme::serve
