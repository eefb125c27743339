#include "runtime/weights/finite_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/formats/decode.h"
#include "kernels/formats/weight_format.h"

namespace trireme::weights {
namespace {

using kernels::WeightFormat;

// Decodes every value: the definition.
std::optional<BadValue> FindSlowly(const kernels::PackArgs& args) {
  const kernels::SliceShape& shape = args.shape;
  std::vector<float> values(static_cast<size_t>(shape.columns));
  for (int64_t row = 0; row < shape.rows; ++row) {
    kernels::DecodeRow(shape.format, args.source + row * args.source_row_bytes, shape.first_column,
                       shape.columns, values.data());
    for (int64_t column = 0; column < shape.columns; ++column) {
      const float value = values[static_cast<size_t>(column)];
      if (!std::isfinite(value)) {
        return BadValue{.row = row, .column = column, .value = value};
      }
    }
  }
  return std::nullopt;
}

void ExpectEqual(const std::optional<BadValue>& found, const std::optional<BadValue>& wanted,
                 const char* what) {
  ASSERT_EQ(found.has_value(), wanted.has_value()) << what;
  if (found.has_value()) {
    EXPECT_EQ(found->row, wanted->row) << what;
    EXPECT_EQ(found->column, wanted->column) << what;
    // A product of two NaNs may have the bits of either.
    EXPECT_TRUE((std::isnan(found->value) && std::isnan(wanted->value)) ||
                found->value == wanted->value)
        << what;
  }
}

// Random bytes without the bits of an exponent of ones, and runs of ones among them.
TEST(FiniteScanTest, FindsWhatDecodingEveryValueFinds) {
  std::mt19937 generator(7);
  for (const kernels::WeightFormatInfo& info : kernels::kWeightFormats) {
    const int64_t unit = info.storage_values == 1 ? 1 : 32;
    int found = 0;
    for (int round = 0; round < 2000; ++round) {
      const int64_t row_values = 256 * (1 + static_cast<int64_t>(generator() % 8));
      kernels::PackArgs args;
      args.source_row_bytes = kernels::StoredRowBytes(info.format, row_values);
      args.shape = {.format = info.format, .rows = 1 + static_cast<int64_t>(generator() % 3)};
      args.shape.first_column = static_cast<int64_t>(generator()) % (row_values / unit) * unit;
      const int64_t left = (row_values - args.shape.first_column) / unit;
      args.shape.columns = (1 + static_cast<int64_t>(generator()) % left) * unit;
      std::vector<std::byte> bytes(static_cast<size_t>(args.source_row_bytes * args.shape.rows));
      for (std::byte& byte : bytes) {
        byte = static_cast<std::byte>(generator() & 0x6B);
      }
      for (size_t runs = generator() % 16; runs > 0; --runs) {
        const size_t first = generator() % bytes.size();
        const size_t end = std::min(bytes.size(), first + 1 + generator() % 8);
        std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(first),
                  bytes.begin() + static_cast<std::ptrdiff_t>(end), std::byte{0xFF});
      }
      args.source = bytes.data();
      const std::optional<BadValue> wanted = FindSlowly(args);
      found += wanted.has_value() ? 1 : 0;
      ExpectEqual(FindBadValue(args), wanted, info.name);
    }
    if (info.format != WeightFormat::kNVFP4) {  // whose scales are finite whatever their bytes
      EXPECT_GT(found, 20) << info.name;
    } else {
      EXPECT_EQ(found, 0);
    }
    EXPECT_LT(found, 1980) << info.name;
  }
}

TEST(FiniteScanTest, VectorsAndSpans) {
  using Limits = std::numeric_limits<float>;
  std::vector<float> values(300, Limits::max());
  EXPECT_TRUE(AreFinite(values));
  EXPECT_FALSE(FindBadValue(absl::MakeConstSpan(values)).has_value());
  for (const size_t place : {0, 127, 128, 255, 299}) {
    values[place] = -Limits::infinity();
    EXPECT_FALSE(AreFinite(values)) << place;
    EXPECT_EQ(FindBadValue(absl::MakeConstSpan(values))->column, static_cast<int64_t>(place));
    values[place] = Limits::denorm_min();
  }
  EXPECT_TRUE(AreFinite({}));
}

}  // namespace
}  // namespace trireme::weights
