#include "runtime/balance/balancer_metrics.h"

#include <utility>

namespace trireme::balance {
namespace {

constexpr std::pair<const char*, int64_t BalancerCounts::*> kCounters[] = {
    {"trireme_attempts_total", &BalancerCounts::attempts},
    {"trireme_retries_total", &BalancerCounts::retries_charged},
    {"trireme_shed_total", &BalancerCounts::shed},
    {"trireme_quarantined_total", &BalancerCounts::quarantined},
    {"trireme_stale_answers_total", &BalancerCounts::stale_answers},
    {"trireme_protocol_faults_total", &BalancerCounts::protocol_faults},
    {"trireme_reports_refused_total", &BalancerCounts::reports_refused}};

double BreakerValue(const std::string& breaker) {
  return breaker == "open" ? 2 : breaker == "half-open" ? 1 : 0;
}

}  // namespace

void BalancerMetrics::Set(const BalancerCounts& counts, const std::vector<ReplicaView>& replicas) {
  for (const auto& [name, count] : kCounters) {
    metrics_.Counter(name).Increment(static_cast<double>(counts.*count - last_.*count));
  }
  last_ = counts;
  int ready = 0;
  for (const ReplicaView& replica : replicas) {
    ready += replica.state == "fresh" && replica.breaker != "open" ? 1 : 0;
    metrics_.Gauge("trireme_breaker_state", {{"replica", replica.name}})
        .Set(BreakerValue(replica.breaker));
    metrics_.Gauge("trireme_replica_attempts", {{"replica", replica.name}})
        .Set(static_cast<double>(replica.attempts));
  }
  metrics_.Gauge("trireme_replicas_ready").Set(ready);
}

}  // namespace trireme::balance
