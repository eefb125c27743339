#include "launcher/fleet_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace trireme::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

FleetView ViewOf(const std::string& state, uint64_t epoch, int64_t restarts) {
  FleetView view;
  ChildView child;
  child.name = "r1";
  child.state = state;
  child.epoch = epoch;
  child.restarts = restarts;
  child.exit_code = 69;
  view.children.push_back(child);
  return view;
}

TEST(FleetMetricsTest, ShowTheStateAndTheEpochOfEachChild) {
  Metrics metrics;
  FleetMetrics fleet(&metrics);
  fleet.Set(ViewOf("starting", 3, 0));
  fleet.Set(ViewOf("serving", 3, 0));
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("trireme_child_state{child=\"r1\",state=\"starting\"} 0"));
  EXPECT_THAT(text, HasSubstr("trireme_child_state{child=\"r1\",state=\"serving\"} 1"));
  EXPECT_THAT(text, HasSubstr("trireme_child_epoch{child=\"r1\"} 3"));
  EXPECT_THAT(text, Not(HasSubstr("trireme_restarts_total")));
}

TEST(FleetMetricsTest, CountRestartsByTheExitCodeThatCausedThem) {
  Metrics metrics;
  FleetMetrics fleet(&metrics);
  fleet.Set(ViewOf("waiting", 3, 1));
  fleet.Set(ViewOf("serving", 4, 1));
  fleet.Set(ViewOf("waiting", 5, 3));
  EXPECT_THAT(metrics.Text(), HasSubstr("trireme_restarts_total{child=\"r1\",code=\"69\"} 3"));
}

}  // namespace
}  // namespace trireme::launcher
