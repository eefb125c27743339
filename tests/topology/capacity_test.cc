// The textbook's numbers, with their arithmetic.
#include "topology/capacity.h"

#include <gtest/gtest.h>

namespace trireme::topology {
namespace {

// A model of 8B parameters on a device of 80 GB and 2 TB/s of which 10 % are kept back; 131,072
// bytes of keys and values a token; sequences of 1,300 tokens.
constexpr double kParameters = 8e9;
constexpr double kBandwidth = 2e12;
constexpr int64_t kSequence = 1300;

KvBudget BudgetWith(double weight_bytes) {
  return {.memory_bytes = 80e9,
          .kept_back_share = 0.10,
          .weight_bytes = weight_bytes,
          .kv_bytes_per_token = 131072};
}

TEST(CapacityTest, EightBillionWeightsIn16BitsLeaveRoomFor328Sequences) {
  const double weights = WeightBytes(kParameters, 16);
  EXPECT_DOUBLE_EQ(weights, 16e9);  // 8e9 * 16 / 8
  // 80e9 * 0.9 - 16e9 = 56e9; / 131072 = 427,246.09; / 1300 = 328.65
  EXPECT_EQ(TokensThatFit(BudgetWith(weights)), 427246);
  EXPECT_EQ(TokensThatFit(BudgetWith(weights)) / kSequence, 328);
}

TEST(CapacityTest, SixteenGigabytesAtTwoTerabytesASecondAre125TokensASecond) {
  EXPECT_DOUBLE_EQ(TokensPerSecond(WeightBytes(kParameters, 16), kBandwidth), 125);  // 2e12 / 16e9
}

TEST(CapacityTest, WeightsIn4BitsLeaveRoomFor399Sequences) {
  const double weights = WeightBytes(kParameters, 4);
  EXPECT_DOUBLE_EQ(weights, 4e9);
  // 72e9 - 4e9 = 68e9; / 131072 = 518,798.8; / 1300 = 399.08
  EXPECT_EQ(TokensThatFit(BudgetWith(weights)) / kSequence, 399);
}

TEST(CapacityTest, FourHundredAndEightyTokensASecondNeed4Point17Bits) {
  // 2e12 / 480 = 4.1667e9 bytes a token; * 8 / 8e9 = 4.1667 bits: what int4 is with its scales.
  const double bits = BitsPerWeight(kBandwidth / 480, kParameters);
  EXPECT_NEAR(bits, 4.17, 0.005);
  EXPECT_NEAR(TokensPerSecond(WeightBytes(kParameters, bits), kBandwidth), 480, 1e-9);
}

TEST(CapacityTest, SeventyBillionWeightsOnFourDevicesAre35GigabytesEach) {
  EXPECT_DOUBLE_EQ(WeightBytes(70e9, 16) / 4, 35e9);  // 140e9 / 4
  // One device of 80 GB does not hold them: 72e9 - 140e9 < 0.
  EXPECT_EQ(TokensThatFit(BudgetWith(WeightBytes(70e9, 16))), 0);
  EXPECT_GT(TokensThatFit(BudgetWith(WeightBytes(70e9, 16) / 4)), 0);
}

TEST(CapacityTest, AllExpertsAreHeldAlthoughATokenReadsFew) {
  // Mixtral 8x7B: 46.7B parameters, 12.9B of them multiply one token. 93.4 GB do not fit into the
  // 72 GB of one device, although 25.8 GB would.
  EXPECT_DOUBLE_EQ(WeightBytes(46.7e9, 16), 93.4e9);
  EXPECT_EQ(TokensThatFit(BudgetWith(WeightBytes(46.7e9, 16))), 0);
  EXPECT_GT(TokensThatFit(BudgetWith(WeightBytes(12.9e9, 16))), 0);
  EXPECT_NEAR(TokensPerSecond(WeightBytes(12.9e9, 16), kBandwidth), 77.5, 0.05);  // 2e12 / 25.8e9
}

}  // namespace
}  // namespace trireme::topology
