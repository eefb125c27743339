#include "runtime/balance/load_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace trireme::balance {
namespace {

LoadReport Good() {
  LoadReport report;
  report.epoch = 3;
  report.report_seq = 7;
  report.blocks_total = 10;
  report.blocks_free = 10;
  return report;
}

TEST(LoadReportTest, F4_NumbersThatCannotBeAreRefusedByName) {
  EXPECT_TRUE(AcceptReport(Good(), 3, 6).ok());
  LoadReport report = Good();
  report.queued_tokens = -1;
  EXPECT_NE(AcceptReport(report, 3, 6).message().find("queued_tokens is -1"),
            absl::string_view::npos);
  for (const double rate : {std::nan(""), -1.0, std::numeric_limits<double>::infinity()}) {
    report = Good();
    report.prefill_tokens_per_second = rate;
    EXPECT_FALSE(AcceptReport(report, 3, 6).ok()) << rate;
  }
  for (const double weight : {std::nan(""), 0.0, 1.5}) {
    report = Good();
    report.weight = weight;
    EXPECT_FALSE(AcceptReport(report, 3, 6).ok()) << weight;
  }
  report = Good();
  report.blocks_free = 11;
  EXPECT_FALSE(AcceptReport(report, 3, 6).ok());
  report = Good();
  report.step_time_p50 = absl::InfiniteDuration();
  EXPECT_FALSE(AcceptReport(report, 3, 6).ok());
}

TEST(LoadReportTest, F4_ReportsThatGoBackAreRefused) {
  EXPECT_FALSE(AcceptReport(Good(), 3, 7).ok());
  EXPECT_FALSE(AcceptReport(Good(), 4, 0).ok());
  EXPECT_TRUE(AcceptReport(Good(), 2, 100).ok());  // a new epoch counts anew
}

}  // namespace
}  // namespace trireme::balance
