#include "kernels/scalar_types.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace trireme::kernels {
namespace {

// The value of a half by its definition, in double.
double ValueOfHalf(int bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(ScalarTypes, EveryHalfHasItsValue) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    if (((bits >> 10) & 31) != 31) {
      EXPECT_EQ(static_cast<double>(value), ValueOfHalf(bits)) << bits;
      EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
    } else if ((bits & 1023) == 0) {
      EXPECT_TRUE(std::isinf(value)) << bits;
      EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
    } else {
      EXPECT_TRUE(std::isnan(value)) << bits;
    }
  }
}

TEST(ScalarTypes, EveryHalfSurvivesTheWayThere) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value)))) << bits;
    } else {
      EXPECT_EQ(FloatToHalf(value), half) << bits;
    }
  }
}

// Between two neighbours the nearer wins, and the even one in the middle.
TEST(ScalarTypes, FloatsRoundToTheNearestHalf) {
  for (int bits = 0; bits < 0x7BFF; ++bits) {
    const double low = ValueOfHalf(bits);
    const double high = ValueOfHalf(bits + 1);
    const float middle = static_cast<float>((low + high) / 2);  // exact: one bit more than a half
    EXPECT_EQ(FloatToHalf(middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    EXPECT_EQ(FloatToHalf(std::nextafterf(middle, 0.0F)), bits) << bits;
    EXPECT_EQ(FloatToHalf(std::nextafterf(middle, 1e9F)), bits + 1) << bits;
  }
}

TEST(ScalarTypes, HalvesOverflowToInfinity) {
  EXPECT_EQ(FloatToHalf(65519.0F), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520.0F), 0x7C00);
  EXPECT_EQ(FloatToHalf(-1e30F), 0xFC00);
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::infinity()), 0x7C00);
}

TEST(ScalarTypes, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(FloatToBFloat16(1.0F), 0x3F80);
  EXPECT_EQ(FloatToBFloat16(1.0F + 0x1p-8F), 0x3F80);            // a tie, even below
  EXPECT_EQ(FloatToBFloat16(1.0F + 0x1p-7F + 0x1p-8F), 0x3F82);  // a tie, even above
  EXPECT_EQ(FloatToBFloat16(1.0F + 0x1p-8F + 0x1p-23F), 0x3F81);
  EXPECT_EQ(FloatToBFloat16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_TRUE(
      std::isnan(BFloat16ToFloat(FloatToBFloat16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(ScalarTypes, EveryBFloat16SurvivesTheWayThere) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const float value = BFloat16ToFloat(static_cast<uint16_t>(bits));
    if (!std::isnan(value)) {
      EXPECT_EQ(FloatToBFloat16(value), bits);
    }
  }
}

TEST(ScalarTypes, ExponentsAreHalvedPowersOfTwo) {
  for (int code = 0; code < 256; ++code) {
    EXPECT_EQ(HalfOfE8M0(static_cast<uint8_t>(code)), std::ldexp(0.5, code - 127)) << code;
  }
}

// 4 bits of exponent with bias 7 and 3 bits of mantissa, subnormal where the exponent is zero.
TEST(ScalarTypes, UnsignedE4M3NumbersAreHalved) {
  for (int code = 0; code < 128; ++code) {
    const int exponent = code / 8;
    const double significand = exponent == 0 ? code % 8 / 8.0 : 1 + code % 8 / 8.0;
    const int power = exponent == 0 ? -6 : exponent - 7;
    EXPECT_EQ(HalfOfE4M3(static_cast<uint8_t>(code)), std::ldexp(significand / 2, power)) << code;
  }
}

TEST(ScalarTypes, E4M3HasNoInfinityAndOneNaNOfEachSign) {
  EXPECT_EQ(E4M3ToFloat(0x01), 0.001953125F);
  EXPECT_EQ(E4M3ToFloat(0x07), 0.013671875F);
  EXPECT_EQ(E4M3ToFloat(0x08), 0.015625F);
  EXPECT_EQ(E4M3ToFloat(0x3d), 1.625F);
  EXPECT_EQ(E4M3ToFloat(0xb8), -1.0F);
  EXPECT_EQ(E4M3ToFloat(0x7e), 448.0F);
  EXPECT_EQ(E4M3ToFloat(0xfc), -384.0F);
  EXPECT_TRUE(std::signbit(E4M3ToFloat(0x80)));
  EXPECT_TRUE(std::isnan(E4M3ToFloat(0x7f)));
  EXPECT_TRUE(std::isnan(E4M3ToFloat(0xff)));
  double sum = 0;
  for (int code = 0; code < 0x7f; ++code) {
    sum += E4M3ToFloat(static_cast<uint8_t>(code));
  }
  EXPECT_EQ(sum, 5407.875);
}

TEST(ScalarTypes, E5M2IsTheUpperByteOfAHalf) {
  EXPECT_EQ(E5M2ToFloat(0x01), 1.52587890625e-05F);
  EXPECT_EQ(E5M2ToFloat(0x07), 0.0001068115234375F);
  EXPECT_EQ(E5M2ToFloat(0x3d), 1.25F);
  EXPECT_EQ(E5M2ToFloat(0xb8), -0.5F);
  EXPECT_EQ(E5M2ToFloat(0x7b), 57344.0F);
  EXPECT_TRUE(std::isinf(E5M2ToFloat(0x7c)));
  EXPECT_TRUE(std::isnan(E5M2ToFloat(0x7e)));
}

TEST(ScalarTypes, E4M3By256IsTheNumberAndSaysWhatTheNanCodesAre) {
  for (int code = 0; code < 256; ++code) {
    const float value = E4M3By256(static_cast<uint8_t>(code));
    if ((code & 0x7F) == 0x7F) {
      EXPECT_EQ(value, code < 128 ? 1.875F : -1.875F);  // 480 / 256
    } else {
      EXPECT_EQ(value, E4M3ToFloat(static_cast<uint8_t>(code)) / 256) << code;
      EXPECT_EQ(std::signbit(value), code >= 128) << code;
    }
  }
}

}  // namespace
}  // namespace trireme::kernels
