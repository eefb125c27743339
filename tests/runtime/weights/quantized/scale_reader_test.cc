#include "runtime/weights/quantized/scale_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/support/fake_parts.h"

namespace trireme::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Number>
PartNumbers NumbersOf(FakeParts* parts, const std::string& dtype,
                      const std::vector<Number>& numbers) {
  parts->Add<Number>("s", dtype, {static_cast<int64_t>(numbers.size())}, numbers);
  return PartNumbers(*parts, *parts->FindPart("s"));
}

TEST(ScaleReaderTest, EveryTypeOfNumber) {
  FakeParts parts;
  EXPECT_EQ(*NumbersOf<float>(&parts, "F32", {0, 1.5F}).At(1), 1.5F);
  EXPECT_EQ(*NumbersOf<uint16_t>(&parts, "F16", {0x3800}).At(0), 0.5F);
  EXPECT_EQ(*NumbersOf<uint16_t>(&parts, "BF16", {0x3f00}).At(0), 0.5F);
  EXPECT_EQ(*NumbersOf<uint8_t>(&parts, "F8_E4M3", {0xb8}).At(0), -1.0F);
  EXPECT_EQ(*NumbersOf<uint8_t>(&parts, "F8_E8M0", {130}).At(0), 8.0F);
  EXPECT_EQ(*NumbersOf<uint8_t>(&parts, "U8", {0}).At(0), 0x1p-127F);
}

TEST(ScaleReaderTest, WhatIsNoFiniteNumberIsNamed) {
  FakeParts parts;
  for (const auto& status : {NumbersOf<uint16_t>(&parts, "F16", {0x7c00}).At(0).status(),
                             NumbersOf<uint8_t>(&parts, "F8_E4M3", {0x7f}).At(0).status(),
                             NumbersOf<uint8_t>(&parts, "U8", {255}).At(0).status()}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("s holds"));
  }
}

TEST(ScaleReaderTest, AGridHasBlocksOfRows) {
  FakeParts parts;
  const GridScales scales(NumbersOf<float>(&parts, "F32", {1, 2, 3, 4, 5, 6}),
                          {.row_block = 2, .row_stride = 3});
  float found[2];
  ASSERT_TRUE(scales.Read(3, {1, 3}, found).ok());
  EXPECT_THAT(found, ElementsAre(5, 6));
}

TEST(ScaleReaderTest, TheTensorsScaleMultipliesOrDivides) {
  FakeParts parts;
  for (const TensorScale operation : {TensorScale::kMultiplies, TensorScale::kDivides}) {
    const TwoLevelScales scales(
        std::make_unique<GridScales>(NumbersOf<float>(&parts, "F32", {6}), GridStrides()), 4,
        operation);
    float found = 0;
    ASSERT_TRUE(scales.Read(0, {0, 1}, &found).ok());
    EXPECT_EQ(found, operation == TensorScale::kMultiplies ? 24 : 1.5F);
  }
}

}  // namespace
}  // namespace trireme::weights
