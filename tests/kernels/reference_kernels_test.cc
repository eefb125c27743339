// The matrix product of every table against exact products (tests/data/gguf-blocks/dot). That
// tables agree with each other to the bit is check_kernels' business.
#include "kernels/reference/reference_kernels.h"

#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/formats/decode.h"
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
