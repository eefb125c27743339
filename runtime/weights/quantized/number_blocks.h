// Storage blocks of floating point numbers with scales (FP8, NF4, FP4, NVFP4): which format of the
// kernels holds a published matrix of them to the bit, and how 32 of its weights are written.
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_NUMBER_BLOCKS_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_NUMBER_BLOCKS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "runtime/weights/quantized/scale_reader.h"
#include "runtime/weights/quantized/storage_blocks.h"

namespace trireme::weights {

inline constexpr int64_t kHalfGroupColumns = 16;

// What decides the format of numbers that are multiplied by their scales.
struct NumberFormatChoice {
  kernels::NumberKind kind = kernels::NumberKind::kInteger;
  ScaleRange range = ScaleRange::kAny;
  const TwoLevelScales* two_levels = nullptr;
  int64_t group_columns = 0;  // that share a scale; 0: all of a row
};

// The narrowest format; F32 where none holds such groups, or such a scale of the tensor. Scales of
// groups have to pass IsBlockScale as well, unless there are two levels.
kernels::WeightFormat NumberFormat(const NumberFormatChoice& choice);

// True for a scale that no block rounds and that gives no zero of another sign: not negative, below
// 2^100.
bool IsBlockScale(float scale);

// The code of +0.
uint8_t ZeroCode(kernels::NumberKind kind);

// 32 weights of a row.
struct NumberGroup {
  uint8_t codes[kBlockColumns];
  // Of each half. Formats with one scale for 32 columns or more have the same in both; those of
  // NVFP4 have E4M3 numbers, the first level, which may be negative.
  float scales[2];
  float tensor_scale;  // the second level
};

// Writes a group, from column `column` of the row on, into the row's blocks. Groups of a superblock
// come in several calls.
void StoreNumberGroup(kernels::WeightFormat format, const NumberGroup& group, int64_t column,
                      std::byte* row);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_NUMBER_BLOCKS_H_
