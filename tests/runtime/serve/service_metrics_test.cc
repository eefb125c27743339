#include "runtime/serve/service_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/base/metrics.h"
#include "tests/support/served_replica.h"

namespace trireme::serve {
namespace {

using ::testing::HasSubstr;

ServedReplicaOptions Options(Metrics* metrics, bool open) {
  ServedReplicaOptions options;
  options.server.door.metrics = metrics;
  options.open = open;
  return options;
}

TEST(ServiceMetricsTest, ShowThePhase) {
  Metrics metrics;
  ServedReplica replica(Options(&metrics, /*open=*/false));
  EXPECT_THAT(metrics.Text(), HasSubstr("trireme_phase{phase=\"starting\"} 1"));
  replica.server().Open(replica.Facade());
  EXPECT_THAT(metrics.Text(), HasSubstr("trireme_phase{phase=\"starting\"} 0"));
  EXPECT_THAT(metrics.Text(), HasSubstr("trireme_phase{phase=\"serving\"} 1"));
}

TEST(ServiceMetricsTest, CountWhatClientsWereGiven) {
  Metrics metrics;
  {
    ServedReplica replica(Options(&metrics, /*open=*/true));
    for (int request = 0; request < 3; ++request) {
      ASSERT_TRUE(Generate(replica.client(), TokenRequest(5)).result.ok());
    }
  }
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("trireme_requests_total{outcome=\"ok\"} 3"));
  EXPECT_THAT(text, HasSubstr("trireme_generated_tokens_total 15"));
  EXPECT_THAT(text, HasSubstr("trireme_prompt_tokens_total 9"));
  EXPECT_THAT(text, HasSubstr("trireme_e2e_seconds_count 3"));
}

TEST(ServiceMetricsTest, ShowHowUnevenlyExpertsAreUsed) {
  Metrics metrics;
  ServedReplicaOptions options = Options(&metrics, /*open=*/true);
  options.server.status = [] {
    StatusSnapshot snapshot;
    snapshot.expert_layers.push_back({.layer = 3, .tokens = {9, 3, 0}, .busiest_ratio = 2.25});
    return snapshot;
  };
  const ServedReplica replica(options);
  EXPECT_THAT(metrics.Text(), HasSubstr("trireme_expert_busiest_ratio{layer=\"3\"} 2.25"));
}

TEST(ServiceMetricsTest, MayBeReadAfterTheService) {
  Metrics metrics;
  {
    const ServedReplica replica(Options(&metrics, /*open=*/true));
    EXPECT_THAT(metrics.Text(), HasSubstr("trireme_phase{phase=\"serving\"} 1"));
  }
  EXPECT_THAT(metrics.Text(), HasSubstr("trireme_phase{phase=\"serving\"} 1"));  // as last seen
}

}  // namespace
}  // namespace trireme::serve
