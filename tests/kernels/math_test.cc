#include "kernels/reference/math.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace trireme::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Distance from the exact value in units of the last place of the float nearest to it.
double ErrorInUlps(float actual, double exact) {
  const auto nearest = static_cast<float>(exact);
  const double ulp =
      static_cast<double>(std::nextafter(nearest, kInfinity)) - static_cast<double>(nearest);
  return std::fabs(static_cast<double>(actual) - exact) / ulp;
}

double LargestErrorInUlps(float first, float last, uint32_t step) {
  double largest = 0;
  const uint32_t low = std::bit_cast<uint32_t>(std::fabs(first));
  const uint32_t high = std::bit_cast<uint32_t>(std::fabs(last));
  for (uint32_t bits = low; bits <= high; bits += step) {
    const float x = std::copysign(std::bit_cast<float>(bits), last);
    largest = std::max(largest, ErrorInUlps(Exp(x), std::exp(static_cast<double>(x))));
  }
  return largest;
}

// The double exponential is wrong by 2^-52 relative, nothing beside a float's 2^-24.
TEST(ExpTest, IsWithinTwoUlpsOverItsRange) {
  EXPECT_LE(LargestErrorInUlps(0.0F, kExpMax, 997), 2.0);
  EXPECT_LE(LargestErrorInUlps(-0.0F, kExpMin, 997), 2.0);
}

TEST(ExpTest, IsWithinTwoUlpsAtEveryFloatNearTheSoftmaxMaximum) {
  EXPECT_LE(LargestErrorInUlps(-0.9999F, -1.0F, 1), 2.0);
  EXPECT_LE(LargestErrorInUlps(-0.3460F, -0.3470F, 1), 2.0);  // where n changes: ln(2) / 2
}

TEST(ExpTest, OfZeroIsExactlyOne) {
  EXPECT_EQ(Exp(0.0F), 1.0F);
  EXPECT_EQ(Exp(-0.0F), 1.0F);
}

TEST(ExpTest, UnderflowsToPositiveZeroBelowItsRange) {
  EXPECT_GT(Exp(kExpMin), 0.0F);
  const float below = Exp(std::nextafter(kExpMin, -kInfinity));
  EXPECT_EQ(std::bit_cast<uint32_t>(below), 0U);
  EXPECT_EQ(std::bit_cast<uint32_t>(Exp(-kInfinity)), 0U);
  EXPECT_EQ(Exp(-1e38F), 0.0F);
}

TEST(ExpTest, IsInfiniteAboveItsRange) {
  EXPECT_TRUE(std::isfinite(Exp(kExpMax)));
  EXPECT_EQ(Exp(std::nextafter(kExpMax, kInfinity)), kInfinity);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
}

TEST(ExpTest, OfNanIsNan) { EXPECT_TRUE(std::isnan(Exp(std::nanf("")))); }

TEST(GatedSiluTest, MatchesTheArchitecturePage) {
  // silu(1.5) = 1.2263617 (specs/architectures.md 1); 8 digits are printed.
  EXPECT_NEAR(GatedSilu(1.5F, 1.0F), 1.2263617F, 2e-7F);
  EXPECT_NEAR(GatedSilu(1.5F, -2.0F), -2.4527234F, 4e-7F);
}

TEST(ActivationTest, MatchesTheArchitecturePage) {
  // specs/architectures.md 1 and 4, printed to 8 digits.
  EXPECT_NEAR(GeluTanh(1.5F), 1.3995716F, 3e-7F);
  EXPECT_EQ(Relu2(1.5F), 2.25F);
  EXPECT_EQ(Relu2(-3.0F), 0.0F);
  EXPECT_NEAR(ClampedSwish(1, 2, 7, 1.702F), 2.5373873F, 5e-7F);
  EXPECT_NEAR(ClampedSwish(8, -9, 7, 1.702F), -41.9997188F, 1e-5F);
  EXPECT_NEAR(ClampedSwish(-3, 0.5F, 7, 1.702F), -0.02710696F, 1e-8F);
}

TEST(SoftCapTest, MatchesTheArchitecturePage) {
  // Tanh errs by at most 3e-7, which the cap multiplies.
  EXPECT_NEAR(SoftCap(10, 50), 9.868766F, 50 * 3e-7F);
  EXPECT_NEAR(SoftCap(60, 50), 41.682730F, 50 * 3e-7F);
  EXPECT_NEAR(SoftCap(10, 30), 9.645382F, 30 * 3e-7F);
  EXPECT_NEAR(SoftCap(60, 30), 28.920827F, 30 * 3e-7F);
  EXPECT_EQ(SoftCap(kInfinity, 30), 30.0F);
  EXPECT_EQ(SoftCap(-kInfinity, 30), -30.0F);
}

TEST(TanhTest, ErrsByAtMostThreeTenMillionths) {
  for (float z = -12; z < 12; z += 0.00371F) {
    ASSERT_NEAR(static_cast<double>(Tanh(z)), std::tanh(static_cast<double>(z)), 3e-7) << z;
  }
}

TEST(GatedSiluTest, VanishesForLargeNegativeGates) {
  EXPECT_EQ(GatedSilu(-200.0F, 3.0F), 0.0F);
  EXPECT_EQ(GatedSilu(200.0F, 3.0F), 600.0F);
}

}  // namespace
}  // namespace trireme::kernels
