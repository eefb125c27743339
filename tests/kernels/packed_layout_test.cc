// Sizes and positions of layout P16, by hand.
#include "kernels/cpu/packed_layout.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/formats/all_formats.h"
#include "tests/kernels/check_harness.h"
#include "tests/kernels/random_weights.h"

namespace trireme::kernels::cpu {
namespace {

TEST(PackedLayout, FourBitsWithMinimumTakeFiveBitsPerWeight) {
  // 18 groups of 256 bytes of codes and 64 of scales; pieces of 8, 8 and 2 groups need no padding.
  EXPECT_EQ(PackedBytes({WeightFormat::kQ4_1, 16, 576, 0}), 18 * 320);
  EXPECT_EQ(PackedBytes({WeightFormat::kQ4_1, 576, 576, 0}), 36 * 18 * 320);
}

TEST(PackedLayout, OddPiecesArePaddedToWholeLines) {
  // One group of Q4_0: 256 + 32 bytes, padded to 320; 9 groups: 8 * 288 = 2304 and 320.
  EXPECT_EQ(PackedBytes({WeightFormat::kQ4_0, 1, 32, 0}), 320);
  EXPECT_EQ(PackedBytes({WeightFormat::kQ4_0, 1, 288, 0}), 2304 + 320);
}

TEST(PackedLayout, SuperblocksEndPieces) {
  // Q4_K: a group has 256 + 32 bytes, a piece 64 more. Columns 192..512 are 2 and 8 groups.
  EXPECT_EQ(PackedBytes({WeightFormat::kQ4_K, 16, 320, 192}), (2 * 288 + 64) + (8 * 288 + 64));
  // The same columns from a border are 8 and 2 groups.
  EXPECT_EQ(PackedBytes({WeightFormat::kQ4_K, 16, 320, 256}), (8 * 288 + 64) + (2 * 288 + 64));
  // Q6_K: 384 + 32 bytes a group, 32 a piece: 864 is padded to 896.
  EXPECT_EQ(PackedBytes({WeightFormat::kQ6_K, 16, 64, 64}), 896);
  // IQ4_XS: 256 + 16 bytes a group, 32 a piece: one group has a line for either.
  EXPECT_EQ(PackedBytes({WeightFormat::kIQ4_XS, 16, 32, 0}), 64 + 64 + 256);
}

// 256 columns of a panel are 4096 weights; a piece of eight groups is padded to whole lines.
TEST(PackedLayout, EveryFormatTakesTheBytesThatTheDocsName) {
  const auto bits_of = [](WeightFormat format) {
    return static_cast<double>(PackedBytes({format, 16, 256, 0})) * 8 / 4096;
  };
  EXPECT_EQ(bits_of(WeightFormat::kQ2_K), 2.625);     // 8 (128 + 32) + 64 = 1344
  EXPECT_EQ(bits_of(WeightFormat::kQ3_K), 3.625);     // 8 (192 + 32) + 32 = 1824, 1856
  EXPECT_EQ(bits_of(WeightFormat::kTQ1_0), 2.125);    // 8 * 128 + 32 = 1056, 1088
  EXPECT_EQ(bits_of(WeightFormat::kTQ2_0), 2.125);    // the same
  EXPECT_EQ(bits_of(WeightFormat::kIQ4_NL), 4.5);     // 8 (256 + 32) = 2304
  EXPECT_EQ(bits_of(WeightFormat::kIQ4_XS), 4.375);   // 8 (256 + 16) + 32 = 2208, 2240
  EXPECT_EQ(bits_of(WeightFormat::kIQ3_XXS), 4.375);  // the same
  EXPECT_EQ(bits_of(WeightFormat::kIQ3_S), 4.375);
  EXPECT_EQ(bits_of(WeightFormat::kIQ2_XXS), 3.375);  // 8 (192 + 16) + 32 = 1696, 1728
  EXPECT_EQ(bits_of(WeightFormat::kIQ1_S), 3.375);
  EXPECT_EQ(bits_of(WeightFormat::kIQ2_XS), 3.625);  // as Q3_K
  EXPECT_EQ(bits_of(WeightFormat::kIQ2_S), 3.625);
  EXPECT_EQ(bits_of(WeightFormat::kIQ1_M), 3.625);
  EXPECT_EQ(bits_of(WeightFormat::kMXFP4), 4.25);       // 8 (256 + 16) = 2176
  EXPECT_EQ(bits_of(WeightFormat::kNVFP4), 4.5);        // 8 (256 + 32) = 2304
  EXPECT_EQ(bits_of(WeightFormat::kF8_E4M3), 8.25);     // 2 (4 * 512 + 64) = 4224
  EXPECT_EQ(bits_of(WeightFormat::kF8_E5M2), 8.25);     // the same
  EXPECT_EQ(bits_of(WeightFormat::kMXFP8), 8.25);       // 8 (512 + 16) = 4224
  EXPECT_EQ(bits_of(WeightFormat::kNF4), 4.5);          // 4 (2 * 256 + 64) = 2304
  EXPECT_EQ(bits_of(WeightFormat::kFP4), 4.5);          // the same
  EXPECT_EQ(bits_of(WeightFormat::kNVFP4_MUL), 4.625);  // 8 (256 + 32) + 64 = 2368
  EXPECT_EQ(bits_of(WeightFormat::kNVFP4_DIV), 4.625);  // the same
}

// NVFP4 has no superblock, so pieces start with the slice wherever it starts.
TEST(PackedLayout, BlocksOf64NeedNoBorder) {
  EXPECT_EQ(PackedBytes({WeightFormat::kNVFP4, 16, 256, 32}), 8 * (256 + 32));
}

// Columns 96..416 of 128-column superblocks are 1, 4, 4 and 1 groups, each with its float32 scales.
TEST(PackedLayout, SuperblocksMayBeShort) {
  EXPECT_EQ(PackedBytes({WeightFormat::kF8_E4M3, 16, 320, 96}), 10 * 512 + 4 * 64);
  // Of 64 columns: 1, 2, 2, 2, 2 and 1 groups.
  EXPECT_EQ(PackedBytes({WeightFormat::kNF4, 16, 320, 96}), 10 * 256 + 6 * 64);
}

TEST(PackedLayout, BytesOfFloatsStandRowByRow) {
  // Row 5 of an F8_E4M3 slice holds the codes 0, 1, 2, ... and the scale 0.5; all other rows zeros.
  std::vector<WeightF8_E4M3> rows(16);
  std::memset(rows.data(), 0, rows.size() * sizeof(WeightF8_E4M3));
  rows[5].scale = 0.5F;
  for (int i = 0; i < 128; ++i) {
    rows[5].codes[i] = static_cast<uint8_t>(i);
  }
  const SliceShape shape{WeightFormat::kF8_E4M3, 16, 128, 0};
  check::GuardedBytes packed(PackedBytes(shape));
  Pack({shape, reinterpret_cast<const std::byte*>(rows.data()), sizeof(WeightF8_E4M3),
        packed.data()});
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ(static_cast<int>(packed.data()[64 + i * 16 + 5]), i);  // behind the scales
    EXPECT_EQ(static_cast<int>(packed.data()[64 + i * 16 + 4]), 0);
  }
  float scale = 0;
  std::memcpy(&scale, packed.data() + 5 * 4, sizeof(scale));
  EXPECT_EQ(scale, 0.5F);
}

TEST(PackedLayout, TwoBitCodesLieInPairs) {
  // Row 3 of a TQ2_0 slice holds the codes 0, 1, 2, 0, 1, 2, ...; all other rows zeros.
  std::vector<WeightTQ2_0> rows(16);
  std::memset(rows.data(), 0, rows.size() * sizeof(WeightTQ2_0));
  for (int i = 0; i < 32; ++i) {
    rows[3].pairs[i] = static_cast<uint8_t>(i % 3);
  }
  check::GuardedBytes packed(PackedBytes({WeightFormat::kTQ2_0, 16, 32, 0}));
  Pack({{WeightFormat::kTQ2_0, 16, 32, 0},
        reinterpret_cast<const std::byte*>(rows.data()),
        sizeof(WeightTQ2_0),
        packed.data()});
  // The line of the superblock's scale comes first.
  for (int i = 0; i < 32; ++i) {
    const int byte = static_cast<int>(packed.data()[64 + i / 16 * 64 + 3 * 4 + i % 4]);
    EXPECT_EQ(byte >> (i / 4 % 4 * 2) & 3, i % 3) << i;
  }
}

TEST(PackedLayout, ColumnsOfBF16LieInPairs) {
  // Row 3 of 17 holds the bits 1, 2, 3 of three columns; all other rows zeros.
  constexpr int64_t kColumns = 3;
  std::vector<uint16_t> rows(17 * kColumns);
  for (int i = 0; i < kColumns; ++i) {
    rows[3 * kColumns + i] = static_cast<uint16_t>(i + 1);
  }
  const SliceShape shape{WeightFormat::kBF16, 17, kColumns, 0};
  check::GuardedBytes packed(PackedBytes(shape));
  ASSERT_EQ(PackedBytes(shape), 2 * 2 * 64);  // two panels of two pairs
  Pack({shape, reinterpret_cast<const std::byte*>(rows.data()), kColumns * 2, packed.data()});
  for (int i = 0; i < 4; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, packed.data() + i / 2 * 64 + 3 * 4 + i % 2 * 2, sizeof(bits));
    EXPECT_EQ(bits, i < kColumns ? i + 1 : 0) << i;
  }
  float values[kColumns];
  DecodePackedRow(shape, packed.data(), 3, values);
  EXPECT_EQ(values[2], 3 * 0x1p-133F);
}

TEST(PackedLayout, RowsFillUpToPanels) {
  EXPECT_EQ(PackedBytes({WeightFormat::kQ8_0, 17, 32, 0}), 2 * (512 + 64));
  EXPECT_EQ(PackedBytes({WeightFormat::kF16, 17, 3, 0}), 2 * 128);  // 96 bytes padded to 128
}

TEST(PackedLayout, FourColumnsOfARowLieTogether) {
  // Row 2 of a Q8_0 slice holds 0, 1, 2, ...; all other rows zeros.
  std::vector<WeightQ8_0> rows(16);
  std::memset(rows.data(), 0, rows.size() * sizeof(WeightQ8_0));
  rows[2].scale = 0x3C00;
  for (int i = 0; i < 32; ++i) {
    rows[2].values[i] = static_cast<int8_t>(i);
  }
  check::GuardedBytes packed(PackedBytes({WeightFormat::kQ8_0, 16, 32, 0}));
  Pack({{WeightFormat::kQ8_0, 16, 32, 0},
        reinterpret_cast<const std::byte*>(rows.data()),
        sizeof(WeightQ8_0),
        packed.data()});
  for (int i = 0; i < 32; ++i) {
    const int position = 64 + i / 4 * 64 + 2 * 4 + i % 4;
    EXPECT_EQ(static_cast<int>(packed.data()[position]), 128 + i);
  }
  EXPECT_EQ(static_cast<int>(packed.data()[64]), 128);          // row 0, value 0
  EXPECT_EQ(static_cast<int>(packed.data()[2 * 2 + 1]), 0x3C);  // the scale of row 2
  EXPECT_TRUE(packed.GuardsAreIntact());
}

// Q4_0: the scales of two groups share a line, behind which their codes lie.
TEST(PackedLayout, ScalesLieBeforeTheCodesOfTheirRun) {
  constexpr PieceBytes kBytes = PieceBytesOf(WeightQ4_0::kTraits);
  EXPECT_EQ(RunGroupsOf(kBytes), 2);
  EXPECT_EQ(ScalesOffset(kBytes, 0), 0);
  EXPECT_EQ(ScalesOffset(kBytes, 1), 32);
  EXPECT_EQ(CodesOffset(kBytes, 0), 64);
  EXPECT_EQ(CodesOffset(kBytes, 1), 64 + 256);
  EXPECT_EQ(ScalesOffset(kBytes, 2), 64 + 2 * 256);
  EXPECT_EQ(CodesOffset(kBytes, 7), 3 * (64 + 2 * 256) + 64 + 256);
  // Q4_K: two lines of halves, then runs of two; Q4_1: a line for each group; Q6_K: one line of
  // halves, of which half is padding; MXFP4: runs of four.
  EXPECT_EQ(ScalesOffset(PieceBytesOf(WeightQ4_K::kTraits), 0), 64);
  EXPECT_EQ(CodesOffset(PieceBytesOf(WeightQ4_K::kTraits), 1), 64 + 64 + 256);
  EXPECT_EQ(ScalesOffset(PieceBytesOf(WeightQ4_1::kTraits), 1), 64 + 256);
  EXPECT_EQ(CodesOffset(PieceBytesOf(WeightQ6_K::kTraits), 2), 64 + (64 + 2 * 384) + 64);
  EXPECT_EQ(ScalesOffset(PieceBytesOf(WeightMXFP4::kTraits), 3), 48);
  EXPECT_EQ(CodesOffset(PieceBytesOf(WeightMXFP4::kTraits), 4), 64 + 4 * 256 + 64);
}

// Row 0 of one Q5_0 group with the codes 16 + i: the plane of their high bits comes before the
// nibbles. Of Q6_K, codes 3 * 16 + 5: pairs of columns 0 to 15, nibbles, pairs of columns 16 to 31.
TEST(PackedLayout, HighBitsLieWhereTheyAreFirstRead) {
  WeightQ5_0 row = {};
  for (int i = 0; i < 16; ++i) {
    row.nibbles[i] = static_cast<uint8_t>(i | i << 4);
  }
  std::memset(row.high_bits, 0xFF, sizeof(row.high_bits));
  check::GuardedBytes packed(PackedBytes({WeightFormat::kQ5_0, 1, 32, 0}));
  Pack({{WeightFormat::kQ5_0, 1, 32, 0},
        reinterpret_cast<const std::byte*>(&row),
        sizeof(row),
        packed.data()});
  for (int j = 0; j < 4; ++j) {
    EXPECT_EQ(static_cast<int>(packed.data()[64 + j]), 0xFF);  // bit t: column 4 t + j
    for (int v = 0; v < 4; ++v) {
      EXPECT_EQ(static_cast<int>(packed.data()[64 + (1 + v) * 64 + j]), (4 * v + j) * 0x11);
    }
  }
  WeightQ6_K block = {};
  std::memset(block.nibbles, 0x55, sizeof(block.nibbles));
  std::memset(block.high_pairs, 0xFF, sizeof(block.high_pairs));
  check::GuardedBytes six(PackedBytes({WeightFormat::kQ6_K, 1, 32, 0}));
  Pack({{WeightFormat::kQ6_K, 1, 32, 0},
        reinterpret_cast<const std::byte*>(&block),
        sizeof(block),
        six.data()});
  for (int vector = 0; vector < 6; ++vector) {
    EXPECT_EQ(static_cast<int>(six.data()[128 + vector * 64]), vector % 5 == 0 ? 0xFF : 0x55);
  }
}

TEST(PackedLayout, ARowComesBackFromInsideASuperblock) {
  for (const WeightFormatInfo& info : kWeightFormats) {
    check::Random random(11);
    const check::StoredMatrix matrix =
        check::RandomMatrix(random, info.format, 19, 512, check::WeightFill::kOrdinary);
    const SliceShape shape{info.format, 19, 288, 96};
    check::GuardedBytes packed(PackedBytes(shape));
    Pack({shape, matrix.bytes.data(), matrix.row_bytes, packed.data()});
    for (int64_t row = 0; row < 19; ++row) {
      std::vector<float> actual(288);
      DecodePackedRow(shape, packed.data(), row, actual.data());
      VisitFormat(info.format, [&](auto block) {
        for (int i = 0; i < 288; ++i) {
          const int column = 96 + i;
          std::memcpy(&block,
                      matrix.bytes.data() + row * matrix.row_bytes +
                          column / info.storage_values * info.storage_bytes,
                      sizeof(block));
          ASSERT_EQ(actual[static_cast<size_t>(i)], block.Value(column % info.storage_values))
              << info.name << " row " << row << " column " << column;
        }
      });
    }
  }
}

TEST(PackedLayout, ActivationRowsHoldCodesAndSevenArrays) {
  EXPECT_EQ(QuantizedRowBytes(64), 128);    // 64 + 2 * 28 = 120
  EXPECT_EQ(QuantizedRowBytes(576), 1088);  // 576 + 18 * 28 = 1080
  EXPECT_EQ(QuantizedArrayOffset(576, kStarts8), 576 + 18 * 4 * 2);
}

}  // namespace
}  // namespace trireme::kernels::cpu
