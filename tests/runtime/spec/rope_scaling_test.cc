#include "runtime/spec/rope_scaling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

// Worked numbers of the published models, printed to about nine digits in the specifications; the
// tolerance is one unit in the last printed digit, relative.
namespace trireme::spec {
namespace {

void ExpectNear(double found, double wanted) {
  EXPECT_NEAR(found / wanted, 1, 2e-9 * 10) << wanted;
}

TEST(RopeScalingTest, PlainFrequenciesArePowersOfTheBase) {
  const std::vector<double> frequencies = PlainFrequencies(4, 10000);
  ASSERT_EQ(frequencies.size(), 2u);
  EXPECT_DOUBLE_EQ(frequencies[0], 1);
  EXPECT_DOUBLE_EQ(frequencies[1], 0.01);
}

TEST(RopeScalingTest, LinearDividesByTheFactor) {
  EXPECT_DOUBLE_EQ(LinearFrequencies({1, 0.5}, 4)[1], 0.125);
}

TEST(RopeScalingTest, Llama31) {
  const std::vector<double> plain = PlainFrequencies(128, 500000);
  const std::vector<double> scaled = Llama3Frequencies(plain, {});
  ExpectNear(plain[1], 0.814617234);
  for (int p = 0; p <= 28; ++p) {
    EXPECT_EQ(scaled[p], plain[p]) << p;
  }
  EXPECT_NEAR(plain[29] / scaled[29], 1.207484, 1e-6);
  EXPECT_NEAR(plain[30] / scaled[30], 1.553415, 1e-6);
  EXPECT_NEAR(plain[31] / scaled[31], 2.026313, 1e-6);
  EXPECT_NEAR(plain[34] / scaled[34], 5.257327, 1e-6);
  for (int p = 35; p < 64; ++p) {
    EXPECT_DOUBLE_EQ(plain[p] / scaled[p], 8) << p;
  }
}

TEST(RopeScalingTest, YarnWithoutTruncation) {
  const std::vector<double> f = YarnFrequencies(
      64, 150000,
      {.factor = 32, .original_context = 4096, .beta_fast = 32, .beta_slow = 1, .truncate = false});
  EXPECT_DOUBLE_EQ(f[0], 1);
  ExpectNear(f[7], 0.0737445682);
  ExpectNear(f[8], 0.0508132748);
  ExpectNear(f[12], 0.00679495949);
  ExpectNear(f[17], 1.29318701e-4);
  ExpectNear(f[18], 3.83088124e-5);
  ExpectNear(f[31], 3.02351143e-7);
  EXPECT_NEAR(YarnMultiplier(32, 1), 1.34657359, 1e-8);
}

TEST(RopeScalingTest, YarnWithTruncation) {
  const std::vector<double> f =
      YarnFrequencies(64, 10000, {.factor = 40, .original_context = 4096});
  ExpectNear(f[10], 0.0562341325);
  ExpectNear(f[11], 0.0390069266);
  ExpectNear(f[16], 0.0055);
  ExpectNear(f[22], 1.77827941e-4);
  ExpectNear(f[31], 3.33380358e-6);
  EXPECT_EQ(YarnMultiplier(1, 1), 1);
}

}  // namespace
}  // namespace trireme::spec
