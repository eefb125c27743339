#include "runtime/weights/quantized/number_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/formats/decode.h"
#include "tests/support/fake_parts.h"

namespace trireme::weights {
namespace {

using kernels::NumberKind;
using kernels::WeightFormat;

std::unique_ptr<TwoLevelScales> TwoLevels(const FakeParts& source, float tensor_scale,
                                          TensorScale operation) {
  return std::make_unique<TwoLevelScales>(
      std::make_unique<GridScales>(PartNumbers(source, *source.FindPart("scales")), GridStrides{}),
      tensor_scale, operation);
}

TEST(NumberBlocksTest, GroupsOfColumnsDecideTheFormat) {
  const auto format = [](NumberKind kind, int64_t group_columns,
                         ScaleRange range = ScaleRange::kAny) {
    return NumberFormat({.kind = kind, .range = range, .group_columns = group_columns});
  };
  EXPECT_EQ(format(NumberKind::kE4M3, 0), WeightFormat::kF8_E4M3);
  EXPECT_EQ(format(NumberKind::kE4M3, 128), WeightFormat::kF8_E4M3);
  EXPECT_EQ(format(NumberKind::kE4M3, 64), WeightFormat::kF32);
  EXPECT_EQ(format(NumberKind::kE4M3, 128, ScaleRange::kExponents), WeightFormat::kF8_E4M3);
  EXPECT_EQ(format(NumberKind::kE4M3, 32, ScaleRange::kExponents), WeightFormat::kMXFP8);
  EXPECT_EQ(format(NumberKind::kE4M3, 16, ScaleRange::kExponents), WeightFormat::kF32);
  EXPECT_EQ(format(NumberKind::kE5M2, 0), WeightFormat::kF8_E5M2);
  EXPECT_EQ(format(NumberKind::kE5M2, 32, ScaleRange::kExponents), WeightFormat::kF32);
  EXPECT_EQ(format(NumberKind::kNF4, 64), WeightFormat::kNF4);
  EXPECT_EQ(format(NumberKind::kNF4, 32), WeightFormat::kF32);
  EXPECT_EQ(format(NumberKind::kFP4, 256), WeightFormat::kFP4);
  EXPECT_EQ(format(NumberKind::kE2M1, 32, ScaleRange::kExponents), WeightFormat::kMXFP4);
  EXPECT_EQ(format(NumberKind::kE2M1, 32), WeightFormat::kF32);
  EXPECT_EQ(format(NumberKind::kInteger, 0), WeightFormat::kF32);
}

TEST(NumberBlocksTest, TheSecondLevelMultipliesOrDivides) {
  FakeParts source;
  source.Add<uint8_t>("scales", "F8_E4M3", {1}, {0x38});
  const auto format = [&](float tensor_scale, TensorScale operation, int64_t group_columns) {
    const auto scales = TwoLevels(source, tensor_scale, operation);
    return NumberFormat(
        {.kind = NumberKind::kE2M1, .two_levels = scales.get(), .group_columns = group_columns});
  };
  EXPECT_EQ(format(0.01F, TensorScale::kMultiplies, 16), WeightFormat::kNVFP4_MUL);
  EXPECT_EQ(format(300.0F, TensorScale::kDivides, 16), WeightFormat::kNVFP4_DIV);
  EXPECT_EQ(format(0.01F, TensorScale::kMultiplies, 8), WeightFormat::kF32);
  EXPECT_EQ(format(0x1p-61F, TensorScale::kMultiplies, 16), WeightFormat::kF32);
  EXPECT_EQ(format(-0.01F, TensorScale::kMultiplies, 16), WeightFormat::kF32);
  EXPECT_EQ(format(0, TensorScale::kMultiplies, 16), WeightFormat::kF32);
}

TEST(NumberBlocksTest, ScalesThatWouldRoundOrTurnZerosAreNoBlockScales) {
  EXPECT_TRUE(IsBlockScale(0));
  EXPECT_TRUE(IsBlockScale(0x1p-149F));
  EXPECT_TRUE(IsBlockScale(1e30F));
  EXPECT_FALSE(IsBlockScale(-0.5F));
  EXPECT_FALSE(IsBlockScale(0x1p100F));
}

// Groups of 32 fill one superblock after the other, each in a call of its own.
TEST(NumberBlocksTest, GroupsOfASuperblockComeInSeveralCalls) {
  std::vector<std::byte> row(static_cast<size_t>(BlockBytes(WeightFormat::kF8_E4M3, 160)));
  ASSERT_EQ(row.size(), 2U * 132);
  for (int64_t column = 0; column < 160; column += 32) {
    NumberGroup group = {};
    for (int i = 0; i < 32; ++i) {
      group.codes[i] = static_cast<uint8_t>(0x38 + (column + i) % 8);  // 1, 1.125 ... 1.875
    }
    group.scales[0] = group.scales[1] = column < 128 ? 0.5F : 3.0F;
    StoreNumberGroup(WeightFormat::kF8_E4M3, group, column, row.data());
  }
  std::vector<float> values(160);
  kernels::DecodeRow(WeightFormat::kF8_E4M3, row.data(), 0, 160, values.data());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], (1 + 0.125F * static_cast<float>(i % 8)) * (i < 128 ? 0.5F : 3.0F)) << i;
  }
}

TEST(NumberBlocksTest, NegativeScalesOfHalfGroupsTurnTheirCodes) {
  NumberGroup group = {};
  std::fill_n(group.codes, 16, uint8_t{0x2});       // 1
  std::fill_n(group.codes + 16, 16, uint8_t{0xF});  // -6
  group.codes[0] = group.codes[16] = 0;
  group.scales[0] = 2;
  group.scales[1] = -1.5F;
  group.tensor_scale = 0.25F;
  std::vector<std::byte> row(static_cast<size_t>(BlockBytes(WeightFormat::kNVFP4_MUL, 32)));
  StoreNumberGroup(WeightFormat::kNVFP4_MUL, group, 0, row.data());
  std::vector<float> values(32);
  kernels::DecodeRow(WeightFormat::kNVFP4_MUL, row.data(), 0, 32, values.data());
  for (int i = 1; i < 16; ++i) {
    EXPECT_EQ(values[static_cast<size_t>(i)], 0.5F);
    EXPECT_EQ(values[static_cast<size_t>(i + 16)], 2.25F);
  }
  EXPECT_FALSE(std::signbit(values[0]) || std::signbit(values[16]));
}

}  // namespace
}  // namespace trireme::weights
