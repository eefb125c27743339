#include "runtime/balance/breaker.h"

#include <gtest/gtest.h>

namespace trireme::balance {
namespace {

class BreakerTest : public ::testing::Test {
 protected:
  void FailTimes(int times) {
    for (int time = 0; time < times; ++time) {
      breaker_.OnFailure(/*probe=*/false, /*may_open=*/true, now_, &random_);
    }
  }
  void WaitOut() { now_ = breaker_.opens_until(); }

  HealthOptions options_{.failures_to_open = 3, .successes_to_close = 2};
  Breaker breaker_{&options_};
  SeededRandom random_{1};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(BreakerTest, OpensAfterFailuresInARowOnly) {
  FailTimes(2);
  breaker_.OnSuccess(false);
  FailTimes(2);
  EXPECT_TRUE(breaker_.Allows(now_));
  FailTimes(1);
  EXPECT_FALSE(breaker_.Allows(now_));
  EXPECT_EQ(breaker_.state_name(), "open");
  EXPECT_GE(breaker_.opens_until(), now_ + options_.open_for);
}

TEST_F(BreakerTest, StaysClosedWhereTooManyAreOpen) {
  for (int time = 0; time < 10; ++time) {
    breaker_.OnFailure(false, /*may_open=*/false, now_, &random_);
  }
  EXPECT_TRUE(breaker_.Allows(now_));
}

TEST_F(BreakerTest, HalfOpenTakesOneProbeAtATimeAndClosesAfterSuccesses) {
  FailTimes(3);
  WaitOut();
  ASSERT_TRUE(breaker_.Allows(now_));
  EXPECT_TRUE(breaker_.Start(now_));
  EXPECT_FALSE(breaker_.Allows(now_));
  breaker_.OnSuccess(/*probe=*/false);  // an old attempt says nothing about now
  EXPECT_FALSE(breaker_.Allows(now_));
  breaker_.OnSuccess(/*probe=*/true);
  EXPECT_EQ(breaker_.state_name(), "half-open");
  EXPECT_TRUE(breaker_.Start(now_));
  breaker_.OnSuccess(/*probe=*/true);
  EXPECT_EQ(breaker_.state_name(), "closed");
}

TEST_F(BreakerTest, ALostProbeOpensAgainForLongerAndAGivenUpOneFreesThePlace) {
  FailTimes(3);
  const absl::Duration first = breaker_.opens_until() - now_;
  WaitOut();
  breaker_.Start(now_);
  breaker_.OnNoVerdict(/*probe=*/true);
  EXPECT_TRUE(breaker_.Allows(now_));
  breaker_.Start(now_);
  breaker_.OnFailure(/*probe=*/true, /*may_open=*/false, now_, &random_);
  EXPECT_EQ(breaker_.state_name(), "open");
  EXPECT_GT(breaker_.opens_until() - now_, first);
}

}  // namespace
}  // namespace trireme::balance
