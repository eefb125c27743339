#include "runtime/weights/quantized/code_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace trireme::weights {
namespace {

using ::testing::ElementsAre;

std::vector<int> Read(const CodeReader& reader, topology::Range rows, topology::Range columns) {
  std::vector<uint8_t> codes(static_cast<size_t>(rows.size() * columns.size()));
  reader.Read(rows, columns, codes.data());
  return {codes.begin(), codes.end()};
}

// The words 0x76543210, 0xfedcba98 as a file holds them.
const std::vector<uint8_t> kWords = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};

TEST(CodeReaderTest, WordsRunAlongColumnsOrRows) {
  const WordCodes along_columns(kWords, {.bits = 4, .run_stride = 1});
  EXPECT_THAT(Read(along_columns, {0, 2}, {6, 8}), ElementsAre(6, 7, 14, 15));
  const WordCodes along_rows(kWords, {.bits = 4, .is_along_columns = false, .run_stride = 1});
  EXPECT_THAT(Read(along_rows, {6, 8}, {0, 2}), ElementsAre(6, 14, 7, 15));
  const WordCodes strided(kWords, {.bits = 8, .word_stride = 1, .run_stride = 2});
  EXPECT_THAT(Read(strided, {0, 1}, {3, 6}), ElementsAre(0x76, 0x98, 0xba));
}

TEST(CodeReaderTest, CodesCrossWordsUnlessTheyArePadded) {
  const WordCodes stream(kWords, {.bits = 5, .run_stride = 2});
  // Bits 30 to 34: 01 of the first word's end, 000 of the second's start.
  EXPECT_THAT(Read(stream, {0, 1}, {6, 7}), ElementsAre(1));
  const WordCodes padded(kWords, {.bits = 5, .is_padded = true, .run_stride = 2});
  EXPECT_THAT(Read(padded, {0, 1}, {6, 7}), ElementsAre(0x18));
  EXPECT_EQ(PackedWords(64, 3, false), 6);
  EXPECT_EQ(PackedWords(64, 3, true), 7);
}

TEST(CodeReaderTest, AddendsWrapAround) {
  const std::vector<uint8_t> words = {0xff, 0xff, 0xff, 0xff};
  const WordCodes carried(words, {.bits = 8, .word_addend = 0x01010101});
  EXPECT_THAT(Read(carried, {0, 1}, {0, 4}), ElementsAre(0, 1, 1, 1));
  const WordCodes by_field(words, {.bits = 8, .code_addend = 1});
  EXPECT_THAT(Read(by_field, {0, 1}, {0, 4}), ElementsAre(0, 0, 0, 0));
}

TEST(CodeReaderTest, BytesNibblesAndSlabs) {
  const ByteCodes bytes(kWords, 4, /*is_signed=*/true);
  EXPECT_THAT(Read(bytes, {1, 2}, {0, 2}), ElementsAre(0x18, 0x3a));
  const NibbleCodes low(kWords, 4, /*is_high_first=*/false);
  EXPECT_THAT(Read(low, {1, 2}, {0, 4}), ElementsAre(4, 5, 6, 7));
  const NibbleCodes high(kWords, 4, /*is_high_first=*/true);
  EXPECT_THAT(Read(high, {1, 2}, {0, 4}), ElementsAre(5, 4, 7, 6));
  const SlabCodes slabs(kWords, 8, 4);  // bytes [2, 4]
  EXPECT_THAT(Read(slabs, {0, 8}, {1, 2}), ElementsAre(2, 2, 0, 2, 3, 3, 0, 2));
}

}  // namespace
}  // namespace trireme::weights
