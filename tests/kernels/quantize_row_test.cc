#include "kernels/reference/quantize_row.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace trireme::kernels::reference {
namespace {

struct Quantized {
  std::vector<int8_t> codes;
  std::vector<float> scales;
};

Quantized QuantizeOne(const std::vector<float>& x) {
  const int64_t columns = static_cast<int64_t>(x.size());
  std::vector<std::byte> storage(static_cast<size_t>(QuantizedBytes(1, columns)));
  QuantizeRow(x.data(), columns, storage.data(), 0, 1);
  const QuantizedRow row = RowOf(storage.data(), 0, columns);
  return {{row.codes, row.codes + columns}, {row.scales, row.scales + columns / 32}};
}

TEST(QuantizeRow, LargestMagnitudeBecomes127) {
  std::vector<float> x(32, 0.0F);
  x[3] = -254.0F;  // scale 2, inverse 0.5
  x[4] = 100.0F;
  const Quantized result = QuantizeOne(x);
  EXPECT_EQ(result.scales[0], 2.0F);
  EXPECT_EQ(result.codes[3], -127);
  EXPECT_EQ(result.codes[4], 50);
  EXPECT_EQ(result.codes[5], 0);
}

TEST(QuantizeRow, HalvesRoundToEven) {
  std::vector<float> x(32, 0.0F);
  x[0] = 127.0F;  // scale and inverse 1
  x[1] = 0.5F;
  x[2] = 1.5F;
  x[3] = 2.5F;
  x[4] = -1.5F;
  x[5] = -2.5F;
  const Quantized result = QuantizeOne(x);
  EXPECT_EQ(result.codes[1], 0);
  EXPECT_EQ(result.codes[2], 2);
  EXPECT_EQ(result.codes[3], 2);
  EXPECT_EQ(result.codes[4], -2);
  EXPECT_EQ(result.codes[5], -2);
}

TEST(QuantizeRow, GroupsHaveScalesOfTheirOwn) {
  std::vector<float> x(96, 0.0F);
  x[0] = 127.0F;
  x[40] = 12.7F;
  const Quantized result = QuantizeOne(x);
  EXPECT_EQ(result.scales[0], 1.0F);
  EXPECT_EQ(result.scales[1], 12.7F / 127.0F);
  EXPECT_EQ(result.codes[40], 127);
  EXPECT_EQ(result.scales[2], 0.0F);
}

TEST(QuantizeRow, NanMarksItsGroupAndNoOther) {
  std::vector<float> x(64, 1.0F);
  x[5] = std::numeric_limits<float>::quiet_NaN();
  const Quantized result = QuantizeOne(x);
  EXPECT_TRUE(std::isnan(result.scales[0]));
  EXPECT_EQ(result.codes[5], 0);
  EXPECT_EQ(result.scales[1], 1.0F / 127.0F);
}

// 127 / 1e-40 is infinite; products with it give no code.
TEST(QuantizeRow, TinyGroupsBecomeZero) {
  const std::vector<float> x(32, 1e-40F);
  const Quantized result = QuantizeOne(x);
  for (const int8_t code : result.codes) {
    EXPECT_EQ(code, 0);
  }
  EXPECT_TRUE(std::isfinite(result.scales[0]));
}

TEST(QuantizeRow, InfinityGivesAnInfiniteScaleAndZeros) {
  std::vector<float> x(32, 1.0F);
  x[9] = std::numeric_limits<float>::infinity();
  const Quantized result = QuantizeOne(x);
  EXPECT_TRUE(std::isinf(result.scales[0]));
  EXPECT_EQ(result.codes[9], 0);
}

}  // namespace
}  // namespace trireme::kernels::reference
