#include "runtime/weights/quantized/quantized_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "kernels/formats/decode.h"
#include "runtime/weights/quantized/storage_blocks.h"
#include "tests/support/fake_parts.h"

namespace trireme::weights {
namespace {

using kernels::WeightFormat;

constexpr int64_t kRows = 3;
constexpr int64_t kColumns = 320;  // no whole number of superblocks

// Bytes that differ, below 2^bits.
std::vector<uint8_t> CodesOf(int bits) {
  std::vector<uint8_t> codes(kRows * kColumns);
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<uint8_t>((i * 37 + i / 7) & ((1U << bits) - 1));
  }
  return codes;
}

// Scales in half precision, one for each row and 64 columns.
QuantizedParts PartsOf(FakeParts* source, const std::vector<uint8_t>& codes, int bits,
                       float scale = 0.375F) {
  source->Add<uint8_t>("codes", "U8", {kRows, kColumns}, codes);
  std::vector<float> scales(kRows * 5);
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = scale * static_cast<float>(i + 1);
  }
  source->Add<float>("scales", "F32", {kRows, 5}, scales);
  QuantizedParts parts;
  parts.source = source;
  parts.scheme = "test";
  parts.Add(*source->FindPart("codes"));
  parts.extents = {.rows = kRows, .columns = kColumns};
  parts.code_bits = bits;
  parts.codes = std::make_unique<ByteCodes>(source->FindPart("codes")->bytes, kColumns, false);
  parts.scales = std::make_unique<GridScales>(PartNumbers(*source, *source->FindPart("scales")),
                                              GridStrides{.row_stride = 5});
  parts.group_columns = 64;
  parts.groups = 5;
  return parts;
}

// What is stored in blocks is what Decode gives.
void ExpectSameValues(const QuantizedMatrix& matrix, WeightFormat format) {
  const auto found = matrix.MemoryFormat();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, format);
  std::vector<float> wanted(kRows * kColumns);
  ASSERT_TRUE(matrix.Decode({0, kRows}, {0, kColumns}, wanted.data()).ok());
  const int64_t row_bytes = BlockBytes(format, kColumns);
  std::vector<std::byte> blocks(static_cast<size_t>(kRows * row_bytes));
  ASSERT_TRUE(matrix.Store(format, {0, kRows}, {0, kColumns}, blocks.data()).ok());
  std::vector<float> values(kColumns);
  for (int64_t row = 0; row < kRows; ++row) {
    kernels::DecodeRow(format, blocks.data() + row * row_bytes, 0, kColumns, values.data());
    for (int64_t column = 0; column < kColumns; ++column) {
      const float found_value = values[static_cast<size_t>(column)];
      const float wanted_value = wanted[static_cast<size_t>(row * kColumns + column)];
      ASSERT_EQ(found_value, wanted_value) << row << ", " << column;
      ASSERT_EQ(std::signbit(found_value), std::signbit(wanted_value)) << row << ", " << column;
    }
  }
}

TEST(QuantizedMatrixTest, IntegersTakeTheNarrowestFormat) {
  struct Case {
    int bits;
    int zero_point;
    WeightFormat format;
  };
  for (const Case& c : {Case{2, 2, WeightFormat::kQ4_0}, Case{4, 8, WeightFormat::kQ4_0},
                        Case{4, 0, WeightFormat::kQ5_0}, Case{4, 7, WeightFormat::kQ5_0},
                        Case{5, 16, WeightFormat::kQ5_0}, Case{8, 128, WeightFormat::kQ8_0},
                        Case{8, 0, WeightFormat::kF32}}) {
    FakeParts source;
    QuantizedParts parts = PartsOf(&source, CodesOf(c.bits), c.bits);
    parts.zero_point = c.zero_point;
    ExpectSameValues(QuantizedMatrix(std::move(parts)), c.format);
  }
}

TEST(QuantizedMatrixTest, ZeroPointsOfGroupsWidenTheRange) {
  FakeParts source;
  QuantizedParts parts = PartsOf(&source, CodesOf(4), 4);
  const std::vector<uint8_t> zeros = {8, 3, 15, 0, 9, 8, 8, 8, 8, 8, 1, 2, 3, 4, 5};
  source.Add<uint8_t>("zeros", "U8", {kRows, 5}, zeros);
  parts.zero_points = std::make_unique<ByteCodes>(source.FindPart("zeros")->bytes, 5, false);
  ExpectSameValues(QuantizedMatrix(std::move(parts)), WeightFormat::kQ5_0);
}

TEST(QuantizedMatrixTest, ScalesThatHalfPrecisionLacksAreKeptDecoded) {
  FakeParts source;
  QuantizedParts parts = PartsOf(&source, CodesOf(4), 4, 0.1F);
  parts.zero_point = 8;
  ExpectSameValues(QuantizedMatrix(std::move(parts)), WeightFormat::kF32);
}

TEST(QuantizedMatrixTest, TernaryNumbersShareSuperblocks) {
  FakeParts source;
  std::vector<uint8_t> codes = CodesOf(2);
  for (uint8_t& code : codes) {
    code = code % 3;
  }
  QuantizedParts parts = PartsOf(&source, codes, 2);
  source.Add<float>("scales", "F32", {1}, {0.75F});
  parts.scales = std::make_unique<GridScales>(PartNumbers(source, *source.FindPart("scales")),
                                              GridStrides{.row_stride = 0});
  parts.meaning = CodeMeaning::kTable;
  parts.numbers = TernaryNumbers();
  parts.group_columns = kColumns;
  parts.groups = 1;
  ExpectSameValues(QuantizedMatrix(std::move(parts)), WeightFormat::kTQ2_0);
}

TEST(QuantizedMatrixTest, ExponentsAndE2M1NumbersAreMxfp4) {
  FakeParts source;
  QuantizedParts parts = PartsOf(&source, CodesOf(4), 4);
  std::vector<uint8_t> exponents(kRows * 10);
  for (size_t i = 0; i < exponents.size(); ++i) {
    exponents[i] = static_cast<uint8_t>(115 + i);
  }
  exponents[0] = 1;
  source.Add<uint8_t>("scales", "U8", {kRows, 10}, exponents);
  parts.scales = std::make_unique<GridScales>(PartNumbers(source, *source.FindPart("scales")),
                                              GridStrides{.row_stride = 10});
  parts.meaning = CodeMeaning::kTable;
  parts.numbers = E2M1Numbers();
  parts.kind = kernels::NumberKind::kE2M1;
  parts.group_columns = 32;
  parts.groups = 10;
  ExpectSameValues(QuantizedMatrix(std::move(parts)), WeightFormat::kMXFP4);
}

// Codes of 8 bits without E4M3's NaN, and -0 and 0 among them.
std::vector<uint8_t> E4M3Codes() {
  std::vector<uint8_t> codes = CodesOf(8);
  for (uint8_t& code : codes) {
    code = (code & 0x7f) == 0x7f ? 0x80 : code;
  }
  return codes;
}

QuantizedParts NumberParts(FakeParts* source, const std::vector<uint8_t>& codes, int bits,
                           kernels::NumberKind kind, const NumberTable& numbers) {
  QuantizedParts parts = PartsOf(source, codes, bits);
  parts.meaning = CodeMeaning::kTable;
  parts.numbers = numbers;
  parts.kind = kind;
  return parts;
}

// Scales of each row and 64 columns, or of the rows.
void SetScales(FakeParts* source, const std::vector<float>& scales, QuantizedParts* parts) {
  const auto groups = static_cast<int64_t>(scales.size()) / kRows;
  source->Add<float>("scales", "F32", {kRows, groups}, scales);
  parts->scales = std::make_unique<GridScales>(PartNumbers(*source, *source->FindPart("scales")),
                                               GridStrides{.row_stride = groups});
  parts->groups = groups;
  parts->group_columns = kColumns / groups;
}

TEST(QuantizedMatrixTest, Fp8NumbersKeepTheScaleOfTheirRow) {
  // The last one makes all products of row 2 zeros or denormal, of both signs.
  const std::vector<float> scales = {0.1F, 3e10F, 0x1p-146F};
  {
    FakeParts source;
    QuantizedParts parts =
        NumberParts(&source, E4M3Codes(), 8, kernels::NumberKind::kE4M3, E4M3Numbers());
    SetScales(&source, scales, &parts);
    ExpectSameValues(QuantizedMatrix(std::move(parts)), WeightFormat::kF8_E4M3);
  }
  FakeParts source;
  std::vector<uint8_t> codes = CodesOf(8);
  for (uint8_t& code : codes) {
    code = (code & 0x7c) == 0x7c ? 0x80 : code;  // no infinity
  }
  QuantizedParts parts = NumberParts(&source, codes, 8, kernels::NumberKind::kE5M2, E5M2Numbers());
  SetScales(&source, scales, &parts);
  ExpectSameValues(QuantizedMatrix(std::move(parts)), WeightFormat::kF8_E5M2);
}

TEST(QuantizedMatrixTest, ScalesThatBlocksWouldChangeAreKeptDecoded) {
  for (const float scale : {-0.5F, 0x1p101F}) {
    FakeParts source;
    QuantizedParts parts =
        NumberParts(&source, E4M3Codes(), 8, kernels::NumberKind::kE4M3, E4M3Numbers());
    SetScales(&source, {1.0F, scale, 1.0F}, &parts);
    ExpectSameValues(QuantizedMatrix(std::move(parts)), WeightFormat::kF32);
  }
}

TEST(QuantizedMatrixTest, AFp8CodeThatIsNoNumberIsNamed) {
  FakeParts source;
  QuantizedParts parts = NumberParts(&source, std::vector<uint8_t>(kRows * kColumns, 0x7f), 8,
                                     kernels::NumberKind::kE4M3, E4M3Numbers());
  SetScales(&source, {1, 1, 1}, &parts);
  const QuantizedMatrix matrix(std::move(parts));
  ASSERT_EQ(*matrix.MemoryFormat(), WeightFormat::kF8_E4M3);
  std::vector<std::byte> blocks(
      static_cast<size_t>(kRows * BlockBytes(WeightFormat::kF8_E4M3, kColumns)));
  const absl::Status status =
      matrix.Store(WeightFormat::kF8_E4M3, {0, kRows}, {0, kColumns}, blocks.data());
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("codes holds the code 0x7F"));
}

TEST(QuantizedMatrixTest, Nf4AndFp4KeepTheScalesOf64Columns) {
  std::vector<float> scales(kRows * 5);
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = i == 3 ? 0 : 0.0123F * static_cast<float>(i + 1);  // a group of zeros
  }
  for (const kernels::NumberKind kind : {kernels::NumberKind::kNF4, kernels::NumberKind::kFP4}) {
    FakeParts source;
    NumberTable numbers = {};
    const kernels::NumberTable known = kernels::NumbersOf(kind);
    std::copy(std::begin(known.numbers), std::end(known.numbers), numbers.begin());
    QuantizedParts parts = NumberParts(&source, CodesOf(4), 4, kind, numbers);
    SetScales(&source, scales, &parts);
    ExpectSameValues(QuantizedMatrix(std::move(parts)),
                     kind == kernels::NumberKind::kNF4 ? WeightFormat::kNF4 : WeightFormat::kFP4);
  }
}

TEST(QuantizedMatrixTest, Nvfp4KeepsBothLevelsOfScales) {
  for (const TensorScale operation : {TensorScale::kMultiplies, TensorScale::kDivides}) {
    FakeParts source;
    QuantizedParts parts =
        NumberParts(&source, CodesOf(4), 4, kernels::NumberKind::kE2M1, E2M1Numbers());
    std::vector<uint8_t> scales(kRows * 20);
    for (size_t i = 0; i < scales.size(); ++i) {
      scales[i] = static_cast<uint8_t>(i * 5 % 127 + (i % 7 == 0 ? 128 : 0));  // some negative
    }
    source.Add<uint8_t>("scales", "F8_E4M3", {kRows, 20}, scales);
    parts.scales = std::make_unique<TwoLevelScales>(
        std::make_unique<GridScales>(PartNumbers(source, *source.FindPart("scales")),
                                     GridStrides{.row_stride = 20}),
        operation == TensorScale::kMultiplies ? 0.00123F : 987.654F, operation);
    parts.group_columns = 16;
    parts.groups = 20;
    ExpectSameValues(QuantizedMatrix(std::move(parts)), operation == TensorScale::kMultiplies
                                                            ? WeightFormat::kNVFP4_MUL
                                                            : WeightFormat::kNVFP4_DIV);
  }
}

TEST(QuantizedMatrixTest, ExponentsOf32ColumnsAreMxfp8) {
  FakeParts source;
  QuantizedParts parts =
      NumberParts(&source, E4M3Codes(), 8, kernels::NumberKind::kE4M3, E4M3Numbers());
  std::vector<uint8_t> exponents(kRows * 10);
  for (size_t i = 0; i < exponents.size(); ++i) {
    exponents[i] = static_cast<uint8_t>(i < 3 ? i : 110 + i);
  }
  source.Add<uint8_t>("scales", "U8", {kRows, 10}, exponents);
  parts.scales = std::make_unique<GridScales>(PartNumbers(source, *source.FindPart("scales")),
                                              GridStrides{.row_stride = 10});
  parts.group_columns = 32;
  parts.groups = 10;
  ExpectSameValues(QuantizedMatrix(std::move(parts)), WeightFormat::kMXFP8);
}

// Groups that the formats of 8 bits lack.
TEST(QuantizedMatrixTest, OtherPowersOfTwoTimesFp8NumbersAreBFloat16) {
  FakeParts source;
  std::vector<uint8_t> codes = CodesOf(8);
  for (uint8_t& code : codes) {
    code = (code & 0x7c) == 0x7c ? 0 : code;
  }
  QuantizedParts parts = NumberParts(&source, codes, 8, kernels::NumberKind::kE5M2, E5M2Numbers());
  source.Add<uint8_t>("scales", "U8", {3, 5}, std::vector<uint8_t>(15, 120));
  parts.scales = std::make_unique<GridScales>(PartNumbers(source, *source.FindPart("scales")),
                                              GridStrides{.row_stride = 5});
  ExpectSameValues(QuantizedMatrix(std::move(parts)), WeightFormat::kBF16);
}

TEST(QuantizedMatrixTest, GroupsThatAreNoRunsAreKeptDecoded) {
  FakeParts source;
  QuantizedParts parts = PartsOf(&source, CodesOf(4), 4);
  parts.zero_point = 8;
  for (int64_t column = 0; column < kColumns; ++column) {
    parts.group_of_column.push_back(static_cast<int32_t>(column % 5));
  }
  const QuantizedMatrix matrix(std::move(parts));
  ExpectSameValues(matrix, WeightFormat::kF32);
  // Row 1, column 7: group 2 of five, scale number 7.
  float value = 0;
  ASSERT_TRUE(matrix.Decode({1, 2}, {7, 8}, &value).ok());
  const int code = CodesOf(4)[static_cast<size_t>(kColumns + 7)];
  EXPECT_EQ(value, static_cast<float>(code - 8) * 0.375F * 8);
}

TEST(QuantizedMatrixTest, ARectangleIsPartOfTheWhole) {
  FakeParts source;
  QuantizedParts parts = PartsOf(&source, CodesOf(4), 4);
  parts.zero_point = 8;
  const QuantizedMatrix matrix(std::move(parts));
  std::vector<float> all(kRows * kColumns);
  ASSERT_TRUE(matrix.Decode({0, kRows}, {0, kColumns}, all.data()).ok());
  std::vector<float> some(2 * 100);
  ASSERT_TRUE(matrix.Decode({1, 3}, {50, 150}, some.data()).ok());
  for (size_t i = 0; i < some.size(); ++i) {
    EXPECT_EQ(some[i], all[(1 + i / 100) * kColumns + 50 + i % 100]);
  }
}

}  // namespace
}  // namespace trireme::weights
