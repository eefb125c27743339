// Norm, activation, addition, rotation and argmax of every table this machine runs, against the
// worked numbers of specs/architectures.md and double precision. That the tables agree to the bit
// is check_kernels' business.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "kernels/scalar_types.h"
#include "tests/kernels/check_harness.h"

namespace trireme::kernels {
namespace {

constexpr double kEpsilon = 0x1p-24;  // relative error of one float operation

class RowsTest : public testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
  const Execution& execution() { return test_execution_.get(); }

 private:
  check::TestExecution test_execution_{2, 64};
};

std::vector<const KernelTable*> AllTables() {
  const KernelTableList list = RunnableKernelTables();
  return {list.tables, list.tables + list.count};
}

std::string TableName(const testing::TestParamInfo<const KernelTable*>& info) {
  return info.param->name;
}

INSTANTIATE_TEST_SUITE_P(Tables, RowsTest, testing::ValuesIn(AllTables()), TableName);

TEST_P(RowsTest, RmsNormMatchesTheArchitecturePage) {
  std::vector<float> x = {1, -2, 3, -4};
  const std::vector<float> gain = {0.5F, 1, 1.5F, 2};
  std::vector<float> y(4);
  table().rms_norm(execution(), {.x = x.data(),
                                 .gain = gain.data(),
                                 .epsilon = 1e-5F,
                                 .tokens = 1,
                                 .columns = 4,
                                 .y = y.data()});
  const float expected[] = {0.1825741F, -0.7302963F, 1.643167F, -2.921185F};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(y[i], expected[i], 1e-6F * std::fabs(expected[i]));  // 7 digits are printed
  }
}

TEST_P(RowsTest, RmsNormAddsDeltaFirstAndAgreesWithDoubles) {
  constexpr int64_t kTokens = 3;
  constexpr int64_t kColumns = 577;
  check::Random random(5);
  std::vector<float> x(kTokens * kColumns), delta(x.size()), gain(kColumns), y(x.size());
  random.FillNormal(x.data(), static_cast<int64_t>(x.size()), 4.0F);
  random.FillNormal(delta.data(), static_cast<int64_t>(delta.size()));
  random.FillNormal(gain.data(), kColumns);
  const std::vector<float> before = x;
  table().rms_norm(execution(), {.x = x.data(),
                                 .delta = delta.data(),
                                 .gain = gain.data(),
                                 .epsilon = 1e-5F,
                                 .tokens = kTokens,
                                 .columns = kColumns,
                                 .y = y.data()});
  for (int64_t token = 0; token < kTokens; ++token) {
    double sum = 0;
    for (int64_t i = token * kColumns; i < (token + 1) * kColumns; ++i) {
      const auto at = static_cast<size_t>(i);
      ASSERT_EQ(x[at], before[at] + delta[at]);
      sum += static_cast<double>(x[at]) * static_cast<double>(x[at]);
    }
    const double root = std::sqrt(sum / kColumns + 1e-5);
    for (int64_t i = 0; i < kColumns; ++i) {
      const auto at = static_cast<size_t>(token * kColumns + i);
      const double expected =
          static_cast<double>(x[at]) / root * static_cast<double>(gain[static_cast<size_t>(i)]);
      // The sum of squares has only positive terms: a chain of 37 and 4 folds; its root halves the
      // relative error; then mean, epsilon, root, division and product.
      const double tolerance = (0.5 * (37 + 4 + 2) + 3) * kEpsilon;
      ASSERT_NEAR(static_cast<double>(y[at]), expected, tolerance * std::fabs(expected));
    }
  }
}

TEST_P(RowsTest, GatedActivationAgreesWithDoubles) {
  constexpr int64_t kCount = 1001;
  check::Random random(6);
  std::vector<float> gate(kCount), up(kCount), y(kCount);
  random.FillNormal(gate.data(), kCount, 6.0F);
  random.FillNormal(up.data(), kCount);
  gate[0] = 1.5F;
  up[0] = 1.0F;
  table().gated_activation(
      execution(),
      {.gate = gate.data(), .up = up.data(), .tokens = 1, .columns = kCount, .y = y.data()});
  EXPECT_NEAR(y[0], 1.2263617F, 2e-7F);  // silu(1.5), specs/architectures.md 1
  for (size_t i = 0; i < kCount; ++i) {
    const auto z = static_cast<double>(gate[i]);
    const double expected = z / (1 + std::exp(-z)) * static_cast<double>(up[i]);
    // exp: 2 ulp = 4 epsilon, then three roundings.
    ASSERT_NEAR(static_cast<double>(y[i]), expected, 7 * kEpsilon * std::fabs(expected));
  }
}

TEST_P(RowsTest, LayerNormTakesTheMeanAway) {
  // x = 1, 2, 3, 6: mean 3, variance (4 + 1 + 0 + 9) / 4 = 3.5.
  std::vector<float> x = {1, 2, 3, 6};
  const std::vector<float> gain = {1, 2, 1, 0.5F};
  const std::vector<float> bias = {0, 1, -1, 0};
  std::vector<float> y(4);
  table().layer_norm(execution(), {.x = x.data(),
                                   .gain = gain.data(),
                                   .bias = bias.data(),
                                   .epsilon = 0.5F,
                                   .tokens = 1,
                                   .columns = 4,
                                   .y = y.data()});
  const float expected[] = {-1, 0, -1, 0.75F};  // the root is 2
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(y[i], expected[i]);
  }
}

TEST_P(RowsTest, SquareSumsAndScaleRowsMakeANorm) {
  std::vector<float> x = {3, 4, 1, 2, 2};
  std::vector<float> sums(3, -1);
  table().square_sums(execution(), {.x = x.data(),
                                    .tokens = 1,
                                    .columns = 5,
                                    .segment_columns = 2,
                                    .sums = sums.data(),
                                    .sums_stride = 3});
  EXPECT_EQ(sums, (std::vector<float>{25, 5, 4}));
  const float root = 2;
  const std::vector<float> gain = {1, 2, 4, 8, 0};
  table().scale_rows(execution(), {.x = x.data(),
                                   .roots = &root,
                                   .gain = gain.data(),
                                   .tokens = 1,
                                   .columns = 5,
                                   .y = x.data()});
  EXPECT_EQ(x, (std::vector<float>{1.5F, 4, 2, 8, 0}));
}

TEST_P(RowsTest, CombineRowsWeighsTheRowsItIsGiven) {
  const std::vector<float> x = {1, 2, 10, 20, 100, 200};  // three rows of two
  const std::vector<int32_t> rows = {2, 0, 1, 1};
  const std::vector<float> weights = {0.5F, 1, 2, -1};
  std::vector<float> y(4);
  table().combine_rows(execution(), {.x = x.data(),
                                     .rows = rows.data(),
                                     .weights = weights.data(),
                                     .terms = 2,
                                     .tokens = 2,
                                     .columns = 2,
                                     .y = y.data()});
  EXPECT_EQ(y, (std::vector<float>{51, 102, 10, 20}));
}

TEST_P(RowsTest, AddAddsInPlace) {
  std::vector<float> x(37), delta(37);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i);
    delta[i] = 100.0F;
  }
  table().add(execution(), {.x = x.data(), .delta = delta.data(), .count = 36});
  for (size_t i = 0; i < 36; ++i) {
    EXPECT_EQ(x[i], static_cast<float>(i) + 100.0F);
  }
  EXPECT_EQ(x[36], 36.0F);
}

// One head of one token, position 3, theta 1e4: angles 3 and 0.03 (specs/architectures.md 2).
struct Rotated {
  std::vector<float> query = {1, 2, 3, 4};
  std::vector<float> key = {1, 2, 3, 4};
};
Rotated RotateExample(const KernelTable& table, const Execution& execution, RopeStyle style,
                      int64_t rotated_dim) {
  Rotated result;
  const float cosines[] = {std::cos(3.0F), std::cos(0.03F)};
  const float sines[] = {std::sin(3.0F), std::sin(0.03F)};
  float value[] = {5, 6, 7, 8};
  KeyValueCache cache{.format = KeyValueFormat::kF32, .key_value_heads = 1, .head_dim = 4};
  std::vector<std::byte> data(static_cast<size_t>(cache.BlockBytes()));
  cache.data = data.data();
  const int64_t slot = 3;
  table.rope_and_store(execution, {.style = style,
                                   .rotated_dim = rotated_dim,
                                   .cosines = cosines,
                                   .sines = sines,
                                   .tokens = 1,
                                   .query = result.query.data(),
                                   .query_heads = 1,
                                   .key = result.key.data(),
                                   .value = value,
                                   .cache = cache,
                                   .slots = &slot});
  return result;
}

TEST_P(RowsTest, HalfSplitRopeMatchesTheArchitecturePage) {
  const Rotated rotated = RotateExample(table(), execution(), RopeStyle::kHalfSplit, 4);
  const float expected[] = {-1.413353F, 1.879118F, -2.828857F, 4.058191F};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(rotated.query[i], expected[i], 1e-6F);
    EXPECT_NEAR(rotated.key[i], expected[i], 1e-6F);
  }
}

TEST_P(RowsTest, InterleavedRopeMatchesTheArchitecturePage) {
  const Rotated rotated = RotateExample(table(), execution(), RopeStyle::kInterleaved, 4);
  const float expected[] = {-1.272233F, -1.838865F, 2.878668F, 4.088187F};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(rotated.query[i], expected[i], 1e-6F);
    EXPECT_NEAR(rotated.key[i], expected[i], 1e-6F);
  }
}

TEST_P(RowsTest, DimsBeyondTheRotatedOnesAndStyleNoneStayAsTheyAre) {
  const Rotated part = RotateExample(table(), execution(), RopeStyle::kHalfSplit, 2);
  EXPECT_NE(part.query[0], 1.0F);
  EXPECT_EQ(part.query[2], 3.0F);
  EXPECT_EQ(part.key[3], 4.0F);
  const Rotated none = RotateExample(table(), execution(), RopeStyle::kNone, 4);
  EXPECT_EQ(none.query, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(none.key, (std::vector<float>{1, 2, 3, 4}));
}

TEST_P(RowsTest, KeysAreStoredSideBySideAndValuesInRowsOfTheSlot) {
  constexpr int64_t kHeads = 2;
  constexpr int64_t kHeadDim = 8;
  KeyValueCache cache{
      .format = KeyValueFormat::kF16, .key_value_heads = kHeads, .head_dim = kHeadDim};
  std::vector<uint16_t> data(static_cast<size_t>(3 * cache.BlockBytes() / 2), 0x1234);
  cache.data = reinterpret_cast<std::byte*>(data.data());
  std::vector<float> key(kHeads * kHeadDim), value(kHeads * kHeadDim);
  for (size_t i = 0; i < key.size(); ++i) {
    key[i] = static_cast<float>(i) + 0.5F;
    value[i] = -static_cast<float>(i);
  }
  const int64_t slot = 2 * kBlockTokens + 11;
  table().rope_and_store(execution(), {.style = RopeStyle::kNone,
                                       .tokens = 1,
                                       .key = key.data(),
                                       .value = value.data(),
                                       .cache = cache,
                                       .slots = &slot});
  std::vector<uint16_t> expected(data.size(), 0x1234);
  for (int64_t head = 0; head < kHeads; ++head) {
    const int64_t base = (2 * kHeads + head) * 2 * kHeadDim * kBlockTokens;
    for (int64_t d = 0; d < kHeadDim; ++d) {
      const auto from = static_cast<size_t>(head * kHeadDim + d);
      expected[static_cast<size_t>(base + d * kBlockTokens + 11)] = FloatToHalf(key[from]);
      expected[static_cast<size_t>(base + (kBlockTokens + 11) * kHeadDim + d)] =
          FloatToHalf(value[from]);
    }
  }
  EXPECT_EQ(data, expected);
}

TEST_P(RowsTest, ArgmaxTakesTheLowestIndexOfEqualValuesAndNeverNan) {
  const float nan = std::nanf("");
  std::vector<float> x(2 * 100, -1.0F);
  x[40] = 7.0F;
  x[23] = 7.0F;
  x[99] = 7.0F;
  x[5] = nan;
  for (size_t i = 100; i < 200; ++i) {
    x[i] = nan;
  }
  int32_t index[2] = {-1, -1};
  float maximum[2] = {};
  table().argmax(execution(),
                 {.x = x.data(), .rows = 2, .columns = 100, .index = index, .maximum = maximum});
  EXPECT_EQ(index[0], 23);
  EXPECT_EQ(maximum[0], 7.0F);
  EXPECT_EQ(index[1], 0);
  EXPECT_EQ(maximum[1], -std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace trireme::kernels
