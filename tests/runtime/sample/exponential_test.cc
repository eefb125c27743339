#include "runtime/sample/exponential.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace trireme::sample {
namespace {

TEST(ExponentialTest, IsOneAtTheMaximumAndVanishesFarBelow) {
  EXPECT_EQ(Weight(3, 3, 1), 1.0f);
  EXPECT_EQ(Weight(3, 3, 1e30f), 1.0f);
  EXPECT_EQ(Weight(-37.1f, 3, 1), 0.0f);
  EXPECT_EQ(Weight(2.9999f, 3, 1e30f), 0.0f);
  EXPECT_EQ(Weight(-HUGE_VALF, 3, 1), 0.0f);
  EXPECT_GT(Weight(-36.9f, 3, 1), 0.0f);
}

// Difference and product round by 6e-8 of the exponent each; the series and its five roundings stay
// below 3e-7.
TEST(ExponentialTest, AgreesWithTheDoubleOne) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<float> spread(-39, 0);
  std::uniform_real_distribution<float> near_zero(-1, 0);
  for (int draw = 0; draw < 100000; ++draw) {
    const float logit = draw % 2 == 0 ? spread(random) : near_zero(random);
    const float inverse = draw % 3 == 0 ? 1.0f : 0.7f;
    const double exponent = (static_cast<double>(logit) - 0.25) * static_cast<double>(inverse);
    const double expected = std::exp(exponent);
    const double weight = static_cast<double>(Weight(logit, 0.25f, inverse));
    ASSERT_NEAR(weight / expected, 1.0, 3e-7 - 1.2e-7 * exponent) << logit;
  }
}

TEST(ExponentialTest, ManyWeightsAreTheSameBitsAsEachAlone) {
  std::mt19937_64 random(8);
  std::uniform_real_distribution<float> spread(-60, 0);
  std::vector<float> logits(1003);
  for (float& logit : logits) {
    logit = 3 + spread(random);
  }
  logits[5] = 3;
  logits[17] = -HUGE_VALF;
  logits[1002] = -HUGE_VALF;
  for (const float inverse_temperature : {1.0f, 2.7f, 0.5f, 1e30f}) {
    std::vector<float> weights(logits.size(), -1);
    Weights(logits, 3, inverse_temperature, weights.data());
    for (size_t index = 0; index < logits.size(); ++index) {
      ASSERT_EQ(weights[index], Weight(logits[index], 3, inverse_temperature)) << logits[index];
    }
  }
}

}  // namespace
}  // namespace trireme::sample
