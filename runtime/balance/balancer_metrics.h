// What a balancer counts about its replicas, read off its controller when somebody scrapes.
#ifndef TRIREME_RUNTIME_BALANCE_BALANCER_METRICS_H_
#define TRIREME_RUNTIME_BALANCE_BALANCER_METRICS_H_

#include <vector>

#include "runtime/balance/balancer_core.h"
#include "runtime/base/metrics.h"

namespace trireme::balance {

// One thread at a time.
class BalancerMetrics {
 public:
  // `metrics` outlives it.
  explicit BalancerMetrics(Metrics* metrics) : metrics_(*metrics) {}

  // Counters grow by what came since the last call.
  void Set(const BalancerCounts& counts, const std::vector<ReplicaView>& replicas);

 private:
  Metrics& metrics_;
  BalancerCounts last_;
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_BALANCER_METRICS_H_
