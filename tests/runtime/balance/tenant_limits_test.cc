#include "runtime/balance/tenant_limits.h"

#include <gtest/gtest.h>

#include <limits>

namespace trireme::balance {
namespace {

TEST(TokenBucketTest, WhoWaitsAsToldIsLetIn) {
  TokenBucket bucket(/*per_second=*/10, absl::Seconds(1));
  absl::Time now = absl::UnixEpoch();
  EXPECT_EQ(bucket.WaitFor(10, now), absl::ZeroDuration());
  bucket.Take(10, now);
  const absl::Duration wait = bucket.WaitFor(4, now);
  EXPECT_GE(wait, absl::Milliseconds(400));
  EXPECT_LT(wait, absl::Milliseconds(401));
  EXPECT_GT(bucket.WaitFor(4, now + absl::Milliseconds(399)), absl::ZeroDuration());
  EXPECT_EQ(bucket.WaitFor(4, now + wait), absl::ZeroDuration());
}

TEST(TokenBucketTest, WhatIsGivenBackCountsAndALargeCostNeedsAFullBucket) {
  TokenBucket bucket(10, absl::Seconds(1));
  const absl::Time now = absl::UnixEpoch();
  bucket.Take(100, now);  // 90 below zero
  EXPECT_GE(bucket.WaitFor(1000, now), absl::Seconds(10));
  bucket.Take(-95, now);
  EXPECT_EQ(bucket.WaitFor(5, now), absl::ZeroDuration());
  EXPECT_GT(bucket.WaitFor(6, now), absl::ZeroDuration());
}

TEST(TokenBucketTest, AnInfiniteRateNeverLimits) {
  TokenBucket bucket(std::numeric_limits<double>::infinity(), absl::Seconds(1));
  bucket.Take(1e18, absl::UnixEpoch());
  EXPECT_EQ(bucket.WaitFor(1e18, absl::UnixEpoch()), absl::ZeroDuration());
}

}  // namespace
}  // namespace trireme::balance
