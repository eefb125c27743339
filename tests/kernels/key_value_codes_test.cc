#include "kernels/formats/key_value_codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/scalar_types.h"

namespace trireme::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The OCP 8-bit floating point specification, table of E4M3.
TEST(KeyValueCodesTest, E4M3NumbersAreThoseOfTheStandard) {
  EXPECT_EQ(NumberOf(KeyValueFormat::kE4M3, 0x00), 0);
  EXPECT_EQ(NumberOf(KeyValueFormat::kE4M3, 0x01), 0x1p-9F);           // smallest subnormal
  EXPECT_EQ(NumberOf(KeyValueFormat::kE4M3, 0x07), 0.875F * 0x1p-6F);  // largest subnormal
  EXPECT_EQ(NumberOf(KeyValueFormat::kE4M3, 0x08), 0x1p-6F);           // smallest normal
  EXPECT_EQ(NumberOf(KeyValueFormat::kE4M3, 0x38), 1);
  EXPECT_EQ(NumberOf(KeyValueFormat::kE4M3, 0x7E), 448);
  EXPECT_EQ(NumberOf(KeyValueFormat::kE4M3, 0xFE), -448);
}

TEST(KeyValueCodesTest, EveryNumberHasItsOwnCode) {
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<uint8_t>(code);
    if ((code & 0x7F) != 0x7F) {
      EXPECT_EQ(CodeOf(KeyValueFormat::kE4M3, NumberOf(KeyValueFormat::kE4M3, byte)), byte);
    }
    if (code != 0x80) {
      EXPECT_EQ(CodeOf(KeyValueFormat::kInt8, NumberOf(KeyValueFormat::kInt8, byte)), byte);
    }
  }
}

TEST(KeyValueCodesTest, HalfwayGoesToTheEvenCodeAndTooMuchToTheLargest) {
  EXPECT_EQ(CodeOf(KeyValueFormat::kE4M3, 1.0625F), 0x38);  // between 1 and 1.125
  EXPECT_EQ(CodeOf(KeyValueFormat::kE4M3, 1.1875F), 0x3A);  // between 1.125 and 1.25
  EXPECT_EQ(CodeOf(KeyValueFormat::kE4M3, 1.9999F), 0x40);  // carries into the exponent
  EXPECT_EQ(CodeOf(KeyValueFormat::kE4M3, 0x1p-10F), 0x00);
  EXPECT_EQ(CodeOf(KeyValueFormat::kE4M3, 3 * 0x1p-10F), 0x02);
  EXPECT_EQ(CodeOf(KeyValueFormat::kE4M3, 0.99F * 0x1p-6F), 0x08);
  EXPECT_EQ(CodeOf(KeyValueFormat::kE4M3, 1e9F), 0x7E);
  EXPECT_EQ(CodeOf(KeyValueFormat::kE4M3, -449), 0xFE);
  EXPECT_EQ(CodeOf(KeyValueFormat::kE4M3, kNan), 0);
  EXPECT_EQ(CodeOf(KeyValueFormat::kInt8, 2.5F), 2);
  EXPECT_EQ(CodeOf(KeyValueFormat::kInt8, -3.5F), 0xFC);
  EXPECT_EQ(CodeOf(KeyValueFormat::kInt8, 1e9F), 127);
  EXPECT_EQ(CodeOf(KeyValueFormat::kInt8, -1e9F), 0x81);
  EXPECT_EQ(CodeOf(KeyValueFormat::kInt8, kNan), 0);
}

class StoredHead {
 public:
  explicit StoredHead(KeyValueFormat format)
      : cache_{.format = format, .key_value_heads = 1, .head_dim = 2} {
    bytes_.resize(static_cast<size_t>(cache_.HeadBytes()));
  }

  void Store(std::vector<float> key, std::vector<float> value, int64_t place) {
    StoreNarrow(cache_, key.data(), value.data(), place, bytes_.data());
  }
  float Key(int64_t place, int64_t d) const { return At(d * kBlockTokens + place, place); }
  float Value(int64_t place, int64_t d) const {
    return At((kBlockTokens + place) * 2 + d, kBlockTokens + place);
  }

 private:
  float At(int64_t index, int64_t slot) const {
    if (cache_.format == KeyValueFormat::kBF16) {
      return BFloat16ToFloat(reinterpret_cast<const uint16_t*>(bytes_.data())[index]);
    }
    return NumberOf(cache_.format, static_cast<uint8_t>(bytes_[static_cast<size_t>(index)])) *
           cache_.Scales(bytes_.data())[slot];
  }

  KeyValueCache cache_;
  std::vector<std::byte> bytes_;
};

TEST(KeyValueCodesTest, EachSlotsKeyAndValueHaveTheirOwnScale) {
  StoredHead head(KeyValueFormat::kInt8);
  head.Store({127, -64}, {0.5F, 254}, 3);
  head.Store({0, 0}, {-1.27F, 0.01F}, 15);
  EXPECT_EQ(head.Key(3, 0), 127);
  EXPECT_EQ(head.Key(3, 1), -64);
  EXPECT_EQ(head.Value(3, 0), 0);  // a step is 2 here
  EXPECT_EQ(head.Value(3, 1), 254);
  EXPECT_EQ(head.Key(15, 0), 0);
  EXPECT_NEAR(head.Value(15, 0), -1.27F, 1e-7);
  EXPECT_NEAR(head.Value(15, 1), 0.01F, 1e-8);
}

TEST(KeyValueCodesTest, FloatsKeepThreeBitsWhateverTheirSize) {
  StoredHead head(KeyValueFormat::kE4M3);
  head.Store({448, 1.1F}, {4.48F, -0.011F}, 0);
  EXPECT_EQ(head.Key(0, 0), 448);
  EXPECT_EQ(head.Key(0, 1), 1.125F);
  EXPECT_NEAR(head.Value(0, 0), 4.48F, 1e-6);
  EXPECT_NEAR(head.Value(0, 1), -0.01125F, 1e-8);  // -1.1 rounds to -1.125, a hundredth of it
}

TEST(KeyValueCodesTest, NanAndInfinityAreNotHidden) {
  for (const KeyValueFormat format : {KeyValueFormat::kInt8, KeyValueFormat::kE4M3}) {
    StoredHead head(format);
    head.Store({1, kNan}, {std::numeric_limits<float>::infinity(), 1}, 1);
    EXPECT_TRUE(std::isnan(head.Key(1, 0)));
    EXPECT_TRUE(std::isnan(head.Value(1, 1)));
    head.Store({1e-42F, 0}, {1e-42F, 1}, 1);  // below every scale
    EXPECT_EQ(head.Key(1, 0), 0);
    EXPECT_EQ(head.Value(1, 1), 1);
  }
}

TEST(KeyValueCodesTest, BFloat16HasNoScale) {
  StoredHead head(KeyValueFormat::kBF16);
  head.Store({1.00390625F, 3e38F}, {-2, 1e-39F}, 7);
  EXPECT_EQ(head.Key(7, 0), 1);  // 1 + 2^-8 lies halfway
  EXPECT_NEAR(head.Key(7, 1), 3e38F, 3e38F / 256);
  EXPECT_EQ(head.Value(7, 0), -2);
  EXPECT_NEAR(head.Value(7, 1), 1e-39F, 1e-40);
}

}  // namespace
}  // namespace trireme::kernels
