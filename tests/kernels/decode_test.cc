// Stored formats against blocks that two independent engines decoded (tests/data/gguf-blocks), to
// the bit: with half scales every product is exact in float32 and each value is rounded at most
// once.
#include "kernels/formats/decode.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "tests/kernels/block_fixtures.h"
#include "tests/kernels/check_harness.h"

namespace trireme::kernels {
namespace {

using testing::FixtureTensor;
using testing::ReadBlockFixture;

class FormatTest : public ::testing::TestWithParam<WeightFormatInfo> {};

std::string NameOf(const ::testing::TestParamInfo<WeightFormatInfo>& info) {
  return info.param.name;
}
// Of the formats that no file has, number_formats_test.cc has hand-worked blocks.
std::vector<WeightFormatInfo> FileFormats() {
  std::vector<WeightFormatInfo> formats;
  std::copy_if(std::begin(kWeightFormats), std::end(kWeightFormats), std::back_inserter(formats),
               [](const WeightFormatInfo& info) { return info.is_in_files; });
  return formats;
}
INSTANTIATE_TEST_SUITE_P(Formats, FormatTest, ::testing::ValuesIn(FileFormats()), NameOf);

// Index of the first value whose bits differ (any NaN equals any NaN), or -1.
int64_t FirstDifference(const float* actual, const float* expected, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const bool both_nan = std::isnan(actual[i]) && std::isnan(expected[i]);
    if (!both_nan && std::memcmp(actual + i, expected + i, sizeof(float)) != 0) {
      return i;
    }
  }
  return -1;
}

void ExpectDecodes(WeightFormat format, const FixtureTensor& bytes, const FixtureTensor& values) {
  std::vector<float> decoded(static_cast<size_t>(values.columns()));
  for (int64_t row = 0; row < bytes.rows(); ++row) {
    DecodeRow(format, bytes.bytes.data() + row * bytes.columns(), 0, values.columns(),
              decoded.data());
    ASSERT_EQ(
        FirstDifference(decoded.data(), values.floats() + row * values.columns(), values.columns()),
        -1)
        << "block " << row;
  }
}

TEST_P(FormatTest, DecodesEveryBlockToTheBit) {
  const auto tensors = ReadBlockFixture(std::string("blocks/") + GetParam().name);
  ASSERT_EQ(tensors.at("bytes").columns(), GetParam().storage_bytes);
  ExpectDecodes(GetParam().format, tensors.at("bytes"), tensors.at("values"));
}

TEST_P(FormatTest, DecodesInfiniteAndNanScales) {
  const auto tensors = ReadBlockFixture(std::string("blocks/") + GetParam().name);
  if (tensors.count("nonfinite_bytes") == 0) {
    GTEST_SKIP() << "no such blocks for this format";
  }
  ExpectDecodes(GetParam().format, tensors.at("nonfinite_bytes"), tensors.at("nonfinite_values"));
}

TEST_P(FormatTest, DecodesAnyRunOfColumns) {
  const auto tensors = ReadBlockFixture(std::string("dot/") + GetParam().name);
  const std::byte* row = tensors.at("bytes").bytes.data();
  std::vector<float> whole(512);
  DecodeRow(GetParam().format, row, 0, 512, whole.data());
  for (const int64_t first : {0, 1, 31, 32, 255, 256, 300, 511}) {
    for (const int64_t columns : {1, 2, 33, 212}) {
      if (first + columns <= 512) {
        std::vector<float> part(static_cast<size_t>(columns));
        DecodeRow(GetParam().format, row, first, columns, part.data());
        EXPECT_EQ(FirstDifference(part.data(), whole.data() + first, columns), -1)
            << first << " + " << columns;
      }
    }
  }
}

TEST_P(FormatTest, RowBytesFollowFromTheBlock) {
  EXPECT_EQ(StoredRowBytes(GetParam().format, 512),
            512 / GetParam().storage_values * GetParam().storage_bytes);
}

// Every table keeps the bits through its own layout.
TEST_P(FormatTest, EveryTableReturnsThePackedBlocksToTheBit) {
  const auto tensors = ReadBlockFixture(std::string("blocks/") + GetParam().name);
  const FixtureTensor& bytes = tensors.at("bytes");
  const FixtureTensor& values = tensors.at("values");
  const SliceShape shape{GetParam().format, bytes.rows(), values.columns(), 0};
  std::vector<int32_t> rows;
  for (int32_t row = 0; row < bytes.rows(); ++row) {
    rows.push_back(row);
  }
  check::TestExecution execution(1, 64);
  const KernelTableList list = RunnableKernelTables();
  for (int i = 0; i < list.count; ++i) {
    const KernelTable& table = *list.tables[i];
    check::GuardedBytes packed(table.packed_bytes(shape));
    table.pack({shape, bytes.bytes.data(), bytes.columns(), packed.data()});
    std::vector<float> decoded(static_cast<size_t>(bytes.rows() * values.columns()));
    table.embedding(execution.get(),
                    {{shape, 0, packed.data()}, 0, rows.data(), bytes.rows(), decoded.data()});
    EXPECT_EQ(
        FirstDifference(decoded.data(), values.floats(), static_cast<int64_t>(decoded.size())), -1)
        << table.name;
    EXPECT_TRUE(packed.GuardsAreIntact()) << table.name;
  }
}

}  // namespace
}  // namespace trireme::kernels
