#include "runtime/serve/recent_latencies.h"

#include <gtest/gtest.h>

namespace trireme::serve {
namespace {

TEST(RecentLatenciesTest, NothingSeenIsZero) {
  const RequestLatency latency = RecentLatencies().Read();
  EXPECT_EQ(latency.streams, 0);
  EXPECT_EQ(latency.first_token_p50, absl::ZeroDuration());
  EXPECT_EQ(latency.token_p99, absl::ZeroDuration());
}

TEST(RecentLatenciesTest, PercentilesOfWhatWasSeen) {
  RecentLatencies latencies;
  for (int i = 101; i >= 1; --i) {  // the middle of 1..101 is 51, 99 % of the way from 1 is 100
    latencies.AddFirstToken(absl::Milliseconds(i));
  }
  latencies.AddToken(absl::Milliseconds(7));
  const RequestLatency latency = latencies.Read();
  EXPECT_EQ(latency.streams, 101);
  EXPECT_EQ(latency.first_token_p50, absl::Milliseconds(51));
  EXPECT_EQ(latency.first_token_p99, absl::Milliseconds(100));
  EXPECT_EQ(latency.token_p50, absl::Milliseconds(7));
  EXPECT_EQ(latency.token_p99, absl::Milliseconds(7));
}

TEST(RecentLatenciesTest, TheLatestTakeThePlacesOfTheOldest) {
  RecentLatencies latencies;
  latencies.AddFirstToken(absl::Seconds(100));
  for (size_t i = 0; i < RecentLatencies::kStreams; ++i) {
    latencies.AddFirstToken(absl::Milliseconds(3));
  }
  const RequestLatency latency = latencies.Read();
  EXPECT_EQ(latency.streams, static_cast<int64_t>(RecentLatencies::kStreams));
  EXPECT_EQ(latency.first_token_p99, absl::Milliseconds(3));
}

}  // namespace
}  // namespace trireme::serve
