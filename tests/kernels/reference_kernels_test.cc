// The matrix product of every table against exact products (tests/data/gguf-blocks/dot). That
// tables agree with each other to the bit is check_kernels' business.
#include "kernels/reference/reference_kernels.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/formats/decode.h"
#include "kernels/scalar_types.h"
#include "tests/kernels/block_fixtures.h"
#include "tests/kernels/check_harness.h"

namespace trireme::kernels {
namespace {

struct TableAndFormat {
  const KernelTable* table;
  WeightFormatInfo format;
};

std::vector<TableAndFormat> AllTablesAndFormats() {
  std::vector<TableAndFormat> all;
  const KernelTableList list = RunnableKernelTables();
  for (int i = 0; i < list.count; ++i) {
    for (const WeightFormatInfo& info : kWeightFormats) {
      if (info.is_in_files) {
        all.push_back({list.tables[i], info});
      }
    }
  }
  return all;
}

std::string NameOf(const ::testing::TestParamInfo<TableAndFormat>& info) {
  return std::string(info.param.table->name) + "_" + info.param.format.name;
}

class ProductTest : public ::testing::TestWithParam<TableAndFormat> {};
INSTANTIATE_TEST_SUITE_P(Tables, ProductTest, ::testing::ValuesIn(AllTablesAndFormats()), NameOf);

constexpr int64_t kTokens = 4;
constexpr int64_t kRows = 16;
constexpr int64_t kColumns = 512;

std::vector<float> Multiply(const TableAndFormat& parameter, const std::byte* weights,
                            const float* x, bool float_activations) {
  const KernelTable& table = *parameter.table;
  check::TestExecution execution(2, 64);
  const SliceShape shape{parameter.format.format, kRows, kColumns, 0};
  check::GuardedBytes packed(table.packed_bytes(shape));
  table.pack({shape, weights, StoredRowBytes(shape.format, kColumns), packed.data()});
  check::GuardedBytes quantized(table.quantized_bytes(kTokens, kColumns));
  table.quantize(execution.get(), {x, kTokens, kColumns, kColumns, quantized.data()});
  const PackedSlice slice{shape, 0, packed.data()};
  std::vector<float> y(kTokens * kRows);
  const MatmulArgs args{.x = float_activations ? x : nullptr,
                        .x_stride = kColumns,
                        .quantized = quantized.data(),
                        .tokens = kTokens,
                        .columns = kColumns,
                        .outputs = {{&slice, 1, kRows, y.data(), kRows}},
                        .output_count = 1};
  table.matmul(execution.get(), args);
  return y;
}

// A chain of 512 float32 additions is off by at most 512 * 2^-24 = 3.1e-5 of the sum of magnitudes,
// typically by its root, 1.4e-6; the fixture's README grants 5e-6, and one lost element is 2e-3.
constexpr double kFloatTolerance = 5e-6;

TEST_P(ProductTest, FloatActivationsGiveTheExactProduct) {
  const auto tensors = testing::ReadBlockFixture(std::string("dot/") + GetParam().format.name);
  const auto activations = testing::ReadBlockFixture("dot/activations");
  const std::vector<float> y = Multiply(GetParam(), tensors.at("bytes").bytes.data(),
                                        activations.at("x").floats(), /*float_activations=*/true);
  const double* exact = tensors.at("y").doubles();
  const double* magnitudes = tensors.at("sum_abs").doubles();
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(y[i]), exact[i], kFloatTolerance * magnitudes[i]) << i;
  }
}

// sigma_q8_32 is the standard deviation of the error that rounding activations to 8 bits causes.
TEST_P(ProductTest, QuantisedActivationsStayWithinFiveSigma) {
  if (!GetParam().format.is_quantized) {
    GTEST_SKIP() << "float formats have no integer path";
  }
  const auto tensors = testing::ReadBlockFixture(std::string("dot/") + GetParam().format.name);
  const auto activations = testing::ReadBlockFixture("dot/activations");
  const std::vector<float> y = Multiply(GetParam(), tensors.at("bytes").bytes.data(),
                                        activations.at("x").floats(), /*float_activations=*/false);
  const double* exact = tensors.at("y").doubles();
  const double* magnitudes = tensors.at("sum_abs").doubles();
  const double* sigma = tensors.at("sigma_q8_32").doubles();
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(y[i]), exact[i], 5 * sigma[i] + kFloatTolerance * magnitudes[i])
        << i;
  }
}

// The product of one row of BF16 weights and one of activations, by every table; all must agree.
float MultiplyPairs(const std::vector<float>& weights, const std::vector<float>& x) {
  const auto columns = static_cast<int64_t>(x.size());
  std::vector<uint16_t> stored;
  for (const float weight : weights) {
    stored.push_back(FloatToBFloat16(weight));
  }
  const KernelTableList list = RunnableKernelTables();
  float first = 0;
  for (int i = list.count - 1; i >= 0; --i) {
    const KernelTable& table = *list.tables[i];
    check::TestExecution execution(1, 64);
    const SliceShape shape{WeightFormat::kBF16, 1, columns, 0};
    check::GuardedBytes packed(table.packed_bytes(shape));
    table.pack(
        {shape, reinterpret_cast<const std::byte*>(stored.data()), columns * 2, packed.data()});
    check::GuardedBytes rounded(table.rounded_bytes(1, columns));
    table.round(execution.get(), {x.data(), 1, columns, columns, rounded.data()});
    const PackedSlice slice{shape, 0, packed.data()};
    float y = 0;
    const MatmulArgs args{.x = nullptr,
                          .x_stride = columns,
                          .rounded = rounded.data(),
                          .tokens = 1,
                          .columns = columns,
                          .outputs = {{&slice, 1, 1, &y, 1}},
                          .output_count = 1};
    table.matmul(execution.get(), args);
    first = i == list.count - 1 ? y : first;
    EXPECT_EQ(y, first) << table.name;
  }
  return first;
}

TEST(ReferenceKernels, TheSecondColumnOfAPairIsAddedFirst) {
  // 2^24 + 1 is 2^24, so the order shows: in the columns' own order the first two are 0 and 1.
  EXPECT_EQ(MultiplyPairs({1, 1, 1, 1}, {0, 0x1p24F, 1, -0x1p24F}), 1.0F);
  EXPECT_EQ(MultiplyPairs({1, 1, 1, 1}, {0, 0x1p24F, -0x1p24F, 1}), 0.0F);
  // And no pair is added up by itself first: that would give 2.
  EXPECT_EQ(MultiplyPairs({1, 1, 1, 1, 1, 1}, {0, 0x1p24F, 1, 1, 0, -0x1p24F}), 0.0F);
  // The last of an odd count stands alone.
  EXPECT_EQ(MultiplyPairs({1, 1, 2}, {0, 0x1p24F, 3}), 0x1p24F + 6);
}

TEST(ReferenceKernels, ActivationsRoundToTheNearestEvenBFloat16) {
  // Neighbours of 1 are 1 + 2^-7 and 1 - 2^-8.
  EXPECT_EQ(MultiplyPairs({1}, {1 + 0x1p-8F}), 1.0F);
  EXPECT_EQ(MultiplyPairs({1}, {1 + 0x1p-8F + 0x1p-23F}), 1 + 0x1p-7F);
  EXPECT_EQ(MultiplyPairs({1}, {1 + 0x3p-8F}), 1 + 0x1p-6F);
  EXPECT_EQ(MultiplyPairs({-1}, {1 - 0x1p-9F}), -1.0F);
  EXPECT_TRUE(std::isinf(MultiplyPairs({1}, {0x1.FFp127F})));
}

TEST(ReferenceKernels, TinyPairsCountAsZero) {
  EXPECT_EQ(MultiplyPairs({0x1p-63F}, {0x1p-49F}), 0x1p-112F);
  EXPECT_EQ(MultiplyPairs({0x1.FEp-64F}, {1}), 0.0F);
  EXPECT_EQ(MultiplyPairs({1}, {-0x1.FEp-50F}), 0.0F);
  EXPECT_EQ(MultiplyPairs({1}, {0x1.FFp-50F}), 0x1p-49F);  // rounded first
  // The least difference of two products: 2^-126, which no instruction flushes.
  EXPECT_EQ(MultiplyPairs({0x1.02p-63F, 0x1p-63F}, {0x1.02p-49F, -0x1.04p-49F}), 0x1p-126F);
}

// Leaves 1 and 2 of a row 1, 1, 1, ... with activations that make the order of addition visible:
// 2^24 + 1 + 1 is 2^24 when added from the left and 2^24 + 2 in tree order (0 + 1) + (2 + 3).
TEST(ReferenceKernels, LeavesAddInTreeOrder) {
  const std::vector<float> weights(4, 1.0F);
  const std::vector<float> x = {0x1p24F, 0.0F, 1.0F, 1.0F};
  const KernelTableList list = RunnableKernelTables();
  for (int i = 0; i < list.count; ++i) {
    const KernelTable& table = *list.tables[i];
    check::TestExecution execution(1, 64);
    std::vector<check::GuardedBytes> packed;
    std::vector<PackedSlice> slices;
    packed.reserve(4);
    for (int leaf = 0; leaf < 4; ++leaf) {
      const SliceShape shape{WeightFormat::kF32, 1, 1, leaf};
      packed.emplace_back(table.packed_bytes(shape));
      table.pack(
          {shape, reinterpret_cast<const std::byte*>(weights.data()), 16, packed.back().data()});
      slices.push_back({shape, leaf, packed.back().data()});
    }
    float y = 0;
    const MatmulArgs args{.x = x.data(),
                          .x_stride = 4,
                          .quantized = nullptr,
                          .tokens = 1,
                          .columns = 4,
                          .outputs = {{slices.data(), 4, 1, &y, 1}},
                          .output_count = 1};
    table.matmul(execution.get(), args);
    EXPECT_EQ(y, 0x1p24F + 2.0F) << table.name;
  }
}

TEST(ReferenceKernels, AnOutputWithoutLeavesIsMinusZero) {
  const KernelTableList list = RunnableKernelTables();
  for (int i = 0; i < list.count; ++i) {
    check::TestExecution execution(1, 64);
    float y[3] = {1, 2, 3};
    const MatmulArgs args{.x = nullptr,
                          .x_stride = 0,
                          .quantized = nullptr,
                          .tokens = 1,
                          .columns = 0,
                          .outputs = {{nullptr, 0, 3, y, 3}},
                          .output_count = 1};
    list.tables[i]->matmul(execution.get(), args);
    for (const float value : y) {
      EXPECT_EQ(value, 0.0F);
      EXPECT_TRUE(std::signbit(value)) << list.tables[i]->name;
    }
  }
}

}  // namespace
}  // namespace trireme::kernels
