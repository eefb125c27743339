// Facts about the grids that their format gives; that every entry decodes as it should is the work
// of decode_test, whose blocks run through all of them.
#include "kernels/formats/iq_grids.h"

#include <bit>
#include <set>

#include "gtest/gtest.h"

namespace trireme::kernels {
namespace {

template <int kEntries>
void ExpectDistinct(const IqGrid<kEntries>& grid, int digits, int bits, int digit_max) {
  std::set<uint16_t> entries;
  for (const uint16_t entry : grid.entries) {
    entries.insert(entry);
    for (int i = 0; i < digits; ++i) {
      EXPECT_LE(entry >> (bits * i) & ((1 << bits) - 1), digit_max) << entry;
    }
    EXPECT_EQ(entry >> (bits * digits), 0) << entry;
  }
  EXPECT_EQ(entries.size(), static_cast<size_t>(kEntries));
}

TEST(IqGrids, EntriesAreDistinctAndTheirDigitsInRange) {
  ExpectDistinct(kGrid1S, 8, 2, 2);
  ExpectDistinct(kGrid2XXS, 8, 2, 2);
  ExpectDistinct(kGrid2XS, 8, 2, 2);
  ExpectDistinct(kGrid2S, 8, 2, 2);
  ExpectDistinct(kGrid3XXS, 4, 3, 7);
  ExpectDistinct(kGrid3S, 4, 3, 7);
}

TEST(IqGrids, StandInTheOrderOfTheFormat) {
  EXPECT_EQ(kGrid2XXS[1], 0x0002);
  EXPECT_EQ(kGrid2XXS[255], 0xA904);
  EXPECT_EQ(kGrid2XS[511], 0xAAAA);
  EXPECT_EQ(kGrid2S[2], 0x0005);
}

TEST(IqGrids, SevenBitsStandForEightSignsOfEvenParity) {
  for (uint32_t bits = 0; bits < 128; ++bits) {
    const uint8_t signs = SignsOf(bits | 0xFF80U);
    EXPECT_EQ(signs & 127U, bits);
    EXPECT_EQ(std::popcount(signs) % 2, 0) << bits;
  }
}

TEST(IqGrids, RunsOfEightBecomeDigitsWithSigns) {
  // Digits 1 2 0 1 2 0 1 2 from the lowest bits on, signs of coordinates 0, 2 and 7.
  const GridRun run = {0b10'01'00'10'01'00'10'01, 0b10000101};
  uint8_t codes[8];
  StoreGrid2(run, codes);
  const uint8_t expected[8] = {5, 2, 4, 1, 2, 0, 1, 6};
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(codes[i], expected[i]) << i;
    EXPECT_EQ(Grid2Digit(run, i), expected[i] & 3) << i;
    EXPECT_EQ(SignOf(run, i), (expected[i] & 4) != 0 ? -1.0F : 1.0F) << i;
  }
}

TEST(IqGrids, RunsOfFourBecomeDigitsWithSigns) {
  const GridRun run = {07350, 0b1010};  // digits 0 5 3 7
  uint8_t codes[4];
  StoreGrid3(run, codes);
  const uint8_t expected[4] = {0, 8 + 5, 3, 8 + 7};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(codes[i], expected[i]) << i;
    EXPECT_EQ(Grid3Digit(run, i), expected[i] & 7) << i;
  }
}

}  // namespace
}  // namespace trireme::kernels
