#include "runtime/weights/quantized/storage_blocks.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/formats/decode.h"

namespace trireme::weights {
namespace {

using kernels::WeightFormat;

TEST(StorageBlocksTest, EveryNumberOfAFormatComesBack) {
  struct Case {
    WeightFormat format;
    int least;
    int most;
  };
  for (const Case& c : {Case{WeightFormat::kTQ2_0, -1, 1}, Case{WeightFormat::kQ4_0, -8, 7},
                        Case{WeightFormat::kQ5_0, -16, 15}, Case{WeightFormat::kQ8_0, -128, 127}}) {
    std::vector<std::byte> row(static_cast<size_t>(BlockBytes(c.format, 256)));
    std::vector<int> wanted;
    for (int64_t column = 0; column < 256; column += kBlockColumns) {
      int numbers[kBlockColumns];
      for (int& number : numbers) {
        number = c.least + static_cast<int>(wanted.size()) % (c.most - c.least + 1);
        wanted.push_back(number);
      }
      StoreNumbers(c.format, numbers, 0.5F, column, row.data());
    }
    std::vector<float> values(256);
    kernels::DecodeRow(c.format, row.data(), 0, 256, values.data());
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], 0.5F * static_cast<float>(wanted[i])) << i;
    }
  }
}

TEST(StorageBlocksTest, TheNarrowestFormatOfARange) {
  EXPECT_EQ(IntegerFormat(-1, 1), WeightFormat::kTQ2_0);
  EXPECT_EQ(IntegerFormat(-2, 1), WeightFormat::kQ4_0);
  EXPECT_EQ(IntegerFormat(-7, 8), WeightFormat::kQ5_0);
  EXPECT_EQ(IntegerFormat(-17, 0), WeightFormat::kQ8_0);
  EXPECT_EQ(IntegerFormat(-129, 0), WeightFormat::kF32);
}

TEST(StorageBlocksTest, HalvesAndRowsOfPartialBlocks) {
  EXPECT_TRUE(IsHalf(0.375F));
  EXPECT_TRUE(IsHalf(0x1p-24F));
  EXPECT_FALSE(IsHalf(0.1F));
  EXPECT_FALSE(IsHalf(70000.0F));
  EXPECT_EQ(BlockBytes(WeightFormat::kTQ2_0, 320), 2 * 66);
  EXPECT_EQ(BlockBytes(WeightFormat::kQ4_0, 320), 10 * 18);
}

}  // namespace
}  // namespace trireme::weights
