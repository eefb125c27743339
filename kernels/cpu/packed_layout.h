// Where packed weights and quantised activations lie in memory for the tables over 16 lanes
// (layout "P16"), and the portable code that writes and reads single rows of it.
//
// Weights. A panel is 16 rows of the slice; rows beyond the last are zeros. Panels follow each
// other. A panel of a format with groups is a run of pieces of up to 8 groups of 32 columns; where
// the format has superblocks a piece ends at each superblock border, else after every 8 groups from
// the slice's start. A piece is
//     scales of the piece; scales of a run of groups, codes of its groups; the next run, ...
// each padded to 64 bytes. A run is as many groups as have their scales in one line of 64 bytes, so
// a product reads nearly byte after byte, which is what the hardware's prefetchers follow best, and
// codes are aligned.
//   codes, as stored, in vectors whose byte j belongs to row j / 4. A low part:
//     8 bits: 8 vectors, vector v column 4 v + j % 4; those of floating point numbers stand one by
//     one: byte j belongs to row j % 16, column 4 v + j / 16.
//     4, 5 and 6 bits: 4 vectors, low nibble column 4 v + j % 4, high nibble that + 16.
//     2 and 3 bits: 2 vectors p ("pairs"), bits 2u and 2u + 1 column 4 (4 p + u) + j % 4.
//     And a high part: 3 and 5 bits: before it a vector whose bit t is the high bit of column
//     4 t + j % 4; 6 bits: a vector of pairs before it, of columns 0 to 15, and one behind it.
//     Codes are read word by word, so vectors lie in the order of their first use.
//   scales of a group: half scale[16], then half minimum[16] if there is one (ScaleKind
//     kGroupHalf); else byte factor[16] for each of its FactorBytes.
//   scales of a piece: with superblocks half scale[16], then half minimum[16] if there is one, or
//     float32 scale[16].
// A panel of F32 or F16 is [columns][16 rows] of the stored values. One of BF16 is [pairs of
// columns][16 rows][2]; behind an odd last column stands a zero.
//
// Activations. Row of a token: int8 codes[columns]; then arrays of one 4-byte value per group, in
// the order of QuantizedArray. A row of bfloat16 activations is the table's own (pair_*.inc).
//
// The constants and functions of this header are internal to each source that includes it, because
// objects of several instruction sets do.
#ifndef TRIREME_KERNELS_CPU_PACKED_LAYOUT_H_
#define TRIREME_KERNELS_CPU_PACKED_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "kernels/formats/weight_group.h"
#include "kernels/kernel_table.h"

namespace trireme::kernels::cpu {

// The portable part, for the entries of these tables.
int64_t PackedBytes(const SliceShape& shape);
void Pack(const PackArgs& args);
// Decodes one row of a packed slice into values[shape.columns], exactly.
void DecodePackedRow(const SliceShape& shape, const std::byte* data, int64_t row, float* values);
void Embedding(const Execution& execution, const EmbeddingArgs& args);

namespace {

constexpr int kPanelRows = 16;
constexpr int kVectorBytes = 64;
constexpr int kPieceGroups = 8;  // at most

// The vector of a group at which its low part begins, and those of the high pairs of 6 bits.
template <int kCodeBits>
constexpr int kLowPartVector = kCodeBits == 3 || kCodeBits == 5 || kCodeBits == 6 ? 1 : 0;
constexpr int kHighPairsVector[2] = {0, 5};

constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Bytes per panel.
struct PieceBytes {
  int codes;         // of one group
  int group_scales;  // of one group
  int piece_scales;  // of one piece
};

constexpr PieceBytes PieceBytesOf(GroupTraits traits) {
  const int halves = kPanelRows * 2 * (traits.has_minimum ? 2 : 1);
  const bool has_group_halves = traits.scales == ScaleKind::kGroupHalf;
  return {traits.code_bits * kVectorBytes,
          has_group_halves ? halves : FactorBytes(traits) * kPanelRows,
          HasFloatScale(traits)    ? kPanelRows * 4
          : HasSuperblocks(traits) ? halves
                                   : 0};
}

// Groups of a run.
constexpr int RunGroupsOf(PieceBytes bytes) {
  if (bytes.group_scales == 0) {
    return kPieceGroups;
  }
  return bytes.group_scales < kVectorBytes ? kVectorBytes / bytes.group_scales : 1;
}

constexpr int64_t PieceSize(PieceBytes bytes, int64_t groups) {
  return RoundUp(bytes.piece_scales, kVectorBytes) +
         RoundUp(groups * bytes.group_scales, kVectorBytes) + groups * bytes.codes;
}

// Where group g of a piece lies, in bytes from the piece's start, which is where its scales are.
constexpr int64_t ScalesOffset(PieceBytes bytes, int64_t g) {
  const int run_groups = RunGroupsOf(bytes);
  const int64_t run_bytes = run_groups * (bytes.group_scales + bytes.codes);
  return RoundUp(bytes.piece_scales, kVectorBytes) + g / run_groups * run_bytes +
         g % run_groups * bytes.group_scales;
}
constexpr int64_t CodesOffset(PieceBytes bytes, int64_t g) {
  const int run_groups = RunGroupsOf(bytes);
  const int64_t run_bytes = run_groups * (bytes.group_scales + bytes.codes);
  return RoundUp(bytes.piece_scales, kVectorBytes) + g / run_groups * run_bytes +
         run_groups * bytes.group_scales + g % run_groups * bytes.codes;
}

constexpr int PieceGroupsOf(GroupTraits traits) {
  return HasSuperblocks(traits) ? traits.superblock_groups : kPieceGroups;
}

// Groups of the piece that starts at group `done` of a slice of `groups` groups, whose first group
// is number `phase` of its superblock (0 without superblocks).
constexpr int64_t GroupsOfPiece(GroupTraits traits, int64_t groups, int64_t phase, int64_t done) {
  const int64_t piece_groups = PieceGroupsOf(traits);
  const int64_t to_border = piece_groups - (phase + done) % piece_groups;
  return to_border < groups - done ? to_border : groups - done;
}

constexpr int64_t PhaseOf(GroupTraits traits, int64_t first_column) {
  return HasSuperblocks(traits) ? first_column / kGroupValues % PieceGroupsOf(traits) : 0;
}

constexpr int64_t GroupedPanelBytes(GroupTraits traits, int64_t columns, int64_t first_column) {
  const PieceBytes bytes = PieceBytesOf(traits);
  const int64_t groups = columns / kGroupValues;
  const int64_t phase = PhaseOf(traits, first_column);
  const int64_t piece_groups = PieceGroupsOf(traits);
  const int64_t head = GroupsOfPiece(traits, groups, phase, 0);
  const int64_t whole = (groups - head) / piece_groups;
  const int64_t tail = (groups - head) % piece_groups;
  return (groups == 0 ? 0 : PieceSize(bytes, head)) + whole * PieceSize(bytes, piece_groups) +
         (tail == 0 ? 0 : PieceSize(bytes, tail));
}

constexpr int64_t FloatPanelBytes(int64_t columns, int64_t element_bytes) {
  return RoundUp(columns * kPanelRows * element_bytes, kVectorBytes);
}

// Of BF16, or of a run of its columns that starts at an even one.
constexpr int64_t PairPanelBytes(int64_t columns) { return (columns + 1) / 2 * kVectorBytes; }

// The arrays behind the codes of a quantised activation row.
enum QuantizedArray : int {
  kScales = 0,        // float d_g
  kScaledSums = 1,    // float A_g * d_g
  kStarts8 = 2,       // int32 -8 A_g, where a sum of unsigned codes with zero point 8 starts
  kStarts16 = 3,      // int32 -16 A_g
  kStarts128 = 4,     // int32 -128 A_g
  kStarts32Low = 5,   // int32 -32 times the sum of the first half group
  kStarts32High = 6,  // int32 -32 times the sum of the second
  kQuantizedArrays = 7,
};

constexpr int64_t QuantizedRowBytes(int64_t columns) {
  return RoundUp(columns + columns / kGroupValues * 4 * kQuantizedArrays, kVectorBytes);
}

// Byte offset of an array in the row.
constexpr int64_t QuantizedArrayOffset(int64_t columns, int array) {
  return columns + columns / kGroupValues * 4 * array;
}

}  // namespace
}  // namespace trireme::kernels::cpu

#endif  // TRIREME_KERNELS_CPU_PACKED_LAYOUT_H_
