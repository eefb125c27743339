#include "runtime/balance/token_log.h"

#include <gtest/gtest.h>

namespace trireme::balance {
namespace {

TEST(TokenLogTest, TakesTokensAtTheNextPositionOnly) {
  TokenLog log({{10, 11}}, /*max_tokens=*/6);
  EXPECT_EQ(log.Append(2, {{12, 13}}), TokenVerdict::kNew);
  EXPECT_EQ(log.Append(3, {{13}}), TokenVerdict::kRepeat);
  EXPECT_EQ(log.Append(0, {}), TokenVerdict::kRepeat);
  EXPECT_EQ(log.Append(5, {{15}}), TokenVerdict::kGap);
  EXPECT_EQ(log.Append(4, {}), TokenVerdict::kEmpty);
  EXPECT_EQ(log.Append(4, {{14, 15, 16}}), TokenVerdict::kTooMany);
  EXPECT_EQ(log.Append(4, {{14, 15}}), TokenVerdict::kNew);
  EXPECT_EQ(log.tokens(), (std::vector<int32_t>{10, 11, 12, 13, 14, 15}));
}

}  // namespace
}  // namespace trireme::balance
