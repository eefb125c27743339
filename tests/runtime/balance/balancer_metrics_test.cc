#include "runtime/balance/balancer_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace trireme::balance {
namespace {

using ::testing::HasSubstr;

ReplicaView ViewOf(const std::string& name, const std::string& state, const std::string& breaker) {
  ReplicaView view;
  view.name = name;
  view.state = state;
  view.breaker = breaker;
  view.attempts = 3;
  return view;
}

TEST(BalancerMetricsTest, CountersGrowByWhatCame) {
  Metrics metrics;
  BalancerMetrics balancer(&metrics);
  BalancerCounts counts;
  counts.attempts = 5;
  balancer.Set(counts, {});
  counts.attempts = 7;
  counts.shed = 1;
  balancer.Set(counts, {});
  EXPECT_THAT(metrics.Text(), HasSubstr("trireme_attempts_total 7"));
  EXPECT_THAT(metrics.Text(), HasSubstr("trireme_shed_total 1"));
}

TEST(BalancerMetricsTest, OnlyReplicasThatMayBePickedAreReady) {
  Metrics metrics;
  BalancerMetrics(&metrics).Set(
      {}, {ViewOf("r1", "fresh", "closed"), ViewOf("r2", "fresh", "half-open"),
           ViewOf("r3", "fresh", "open"), ViewOf("r4", "suspect", "closed")});
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("trireme_replicas_ready 2"));
  EXPECT_THAT(text, HasSubstr("trireme_breaker_state{replica=\"r1\"} 0"));
  EXPECT_THAT(text, HasSubstr("trireme_breaker_state{replica=\"r2\"} 1"));
  EXPECT_THAT(text, HasSubstr("trireme_breaker_state{replica=\"r3\"} 2"));
  EXPECT_THAT(text, HasSubstr("trireme_replica_attempts{replica=\"r4\"} 3"));
}

}  // namespace
}  // namespace trireme::balance
