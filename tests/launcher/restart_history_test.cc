#include "launcher/restart_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme::launcher {
namespace {

using ::testing::HasSubstr;

constexpr double kMiddle = 0.5;  // no jitter: 0.75 + 0.5 * 0.5 = 1

topology::RestartRule Rule(int failures_max) {
  return {.backoff_min = absl::Seconds(1),
          .backoff_max = absl::Seconds(60),
          .failures_max = failures_max,
          .failures_window = absl::Minutes(10)};
}

absl::Time At(int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

TEST(RestartHistoryTest, BackoffDoublesUpToItsMost) {
  RestartHistory history(Rule(100));
  for (const int seconds : {1, 2, 4, 8, 16, 32, 60, 60}) {
    EXPECT_EQ(history.OnFailure(69, kMiddle, At(0)).backoff, absl::Seconds(seconds));
  }
}

TEST(RestartHistoryTest, JitterIsAQuarterEachWay) {
  RestartHistory history(Rule(100));
  EXPECT_EQ(history.OnFailure(69, 0.0, At(0)).backoff, absl::Seconds(0.75));
  history.OnStable();
  const absl::Duration longest = *history.OnFailure(69, 0.999, At(0)).backoff;
  EXPECT_GT(longest, absl::Seconds(1.24));
  EXPECT_LT(longest, absl::Seconds(1.25));
}

TEST(RestartHistoryTest, ServingLongEnoughForgetsTheRow) {
  RestartHistory history(Rule(100));
  (void)history.OnFailure(69, kMiddle, At(0));
  (void)history.OnFailure(69, kMiddle, At(1));
  history.OnStable();
  EXPECT_EQ(history.OnFailure(69, kMiddle, At(2)).backoff, absl::Seconds(1));
}

TEST(RestartHistoryTest, TheFifthFailureWithOneCodeWithinTheWindowGivesUp) {
  RestartHistory history(Rule(5));
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(history.OnFailure(69, kMiddle, At(i)).backoff.has_value());
  }
  EXPECT_TRUE(history.OnFailure(75, kMiddle, At(5)).backoff.has_value());  // another code
  const RestartDecision decision = history.OnFailure(69, kMiddle, At(6));
  EXPECT_FALSE(decision.backoff.has_value());
  EXPECT_THAT(decision.why, HasSubstr("code=69: 5 times within 10m"));
}

TEST(RestartHistoryTest, FailuresBeforeTheWindowDoNotCount) {
  RestartHistory history(Rule(2));
  EXPECT_TRUE(history.OnFailure(69, kMiddle, At(0)).backoff.has_value());
  EXPECT_TRUE(history.OnFailure(69, kMiddle, At(601)).backoff.has_value());
  EXPECT_FALSE(history.OnFailure(69, kMiddle, At(602)).backoff.has_value());
}

TEST(RestartHistoryTest, WhatANewStartCannotChangeIsNotTriedAgain) {
  for (const int code : {64, 65, 66, 72, 77, 78}) {
    RestartHistory history(Rule(5));
    EXPECT_FALSE(history.OnFailure(code, kMiddle, At(0)).backoff.has_value()) << code;
  }
  for (const int code : {1, 69, 70, 71, 73, 74, 75, 76, 137, 205}) {
    RestartHistory history(Rule(5));
    EXPECT_TRUE(history.OnFailure(code, kMiddle, At(0)).backoff.has_value()) << code;
  }
}

}  // namespace
}  // namespace trireme::launcher
