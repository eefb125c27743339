#include "runtime/weights/quantized/number_blocks.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/formats/all_formats.h"
#include "kernels/scalar_types.h"
#include "runtime/base/check.h"

namespace trireme::weights {
namespace {

using kernels::NumberKind;
using kernels::WeightFormat;

constexpr uint8_t kE2M1Sign = 8;

bool AreWhole(const NumberFormatChoice& choice, int64_t scale_columns) {
  return choice.group_columns % scale_columns == 0;
}

// Within these a product or quotient with an E4M3 number is a normal float32, as is its half.
bool IsTensorScale(float scale) { return scale >= 0x1p-60F && scale <= 0x1p60F; }

WeightFormat FourBitFormat(const NumberFormatChoice& choice) {
  if (choice.two_levels != nullptr) {
    if (!AreWhole(choice, kHalfGroupColumns) || !IsTensorScale(choice.two_levels->tensor_scale())) {
      return WeightFormat::kF32;
    }
    return choice.two_levels->operation() == TensorScale::kMultiplies ? WeightFormat::kNVFP4_MUL
                                                                      : WeightFormat::kNVFP4_DIV;
  }
  return choice.range == ScaleRange::kExponents && AreWhole(choice, kBlockColumns)
             ? WeightFormat::kMXFP4
             : WeightFormat::kF32;
}

// Writes into the block that holds the column what `fill` changes of it.
template <typename Block, typename Fill>
void UpdateBlock(int64_t column, std::byte* row, const Fill& fill) {
  constexpr int64_t kValues = kernels::InfoOf(Block::kFormat).storage_values;
  std::byte* const target = row + column / kValues * static_cast<int64_t>(sizeof(Block));
  Block block;
  std::memcpy(&block, target, sizeof(block));
  fill(&block, column % kValues / kBlockColumns);
  std::memcpy(target, &block, sizeof(block));
}

// Code i in the low nibble of byte i, code i + 16 in the high one.
void StoreNibbles(const uint8_t (&codes)[kBlockColumns], uint8_t (&nibbles)[16]) {
  for (int i = 0; i < 16; ++i) {
    nibbles[i] = static_cast<uint8_t>(codes[i] | codes[i + 16] << 4);
  }
}

template <typename Block>
void StoreFloat8(const NumberGroup& group, int64_t column, std::byte* row) {
  UpdateBlock<Block>(column, row, [&](Block* block, int64_t index) {
    // -0 is +0 without its sign, so that products with it are those of Decode.
    block->scale = std::abs(group.scales[0]);
    std::memcpy(block->codes + index * kBlockColumns, group.codes, sizeof(group.codes));
  });
}

template <typename Block>
void StoreLookUp4(const NumberGroup& group, int64_t column, std::byte* row) {
  UpdateBlock<Block>(column, row, [&](Block* block, int64_t index) {
    block->scale = std::abs(group.scales[0]);
    StoreNibbles(group.codes, block->nibbles[index]);
  });
}

// The scale is 2^(exponent - 127).
void StoreMxfp8(const NumberGroup& group, int64_t column, std::byte* row) {
  UpdateBlock<kernels::WeightMXFP8>(column, row, [&](kernels::WeightMXFP8* block, int64_t) {
    block->exponent = static_cast<uint8_t>(std::bit_cast<uint32_t>(group.scales[0]) >> 23);
    std::memcpy(block->codes, group.codes, sizeof(group.codes));
  });
}

// Of a number that E4M3 has, or 480, which GGUF adds; without its sign.
uint8_t CodeOfE4M3(float number) {
  const auto code =
      static_cast<uint8_t>(kernels::FloatToHalf(std::abs(number) * 0x1p-8F) >> 7 & 0x7F);
  CHECK_EQ(kernels::E4M3By256(code), std::abs(number) * 0x1p-8F);
  return code;
}

// The sign of a scale moves to its codes, which have one.
template <typename Block>
void StoreTwoLevels(const NumberGroup& group, int64_t column, std::byte* row) {
  UpdateBlock<Block>(column, row, [&](Block* block, int64_t index) {
    uint8_t codes[kBlockColumns];
    for (int i = 0; i < kBlockColumns; ++i) {
      const bool flips = std::signbit(group.scales[i / kHalfGroupColumns]) && group.codes[i] != 0;
      codes[i] = flips ? group.codes[i] ^ kE2M1Sign : group.codes[i];
    }
    StoreNibbles(codes, block->nibbles[index]);
    for (int h = 0; h < 2; ++h) {
      block->scales[2 * index + h] = CodeOfE4M3(group.scales[h]);
    }
    block->tensor_scale = group.tensor_scale;
  });
}

}  // namespace

WeightFormat NumberFormat(const NumberFormatChoice& choice) {
  constexpr int64_t kFloat8Columns = 128;
  constexpr int64_t kLookUpColumns = 64;
  if (choice.two_levels != nullptr && choice.kind != NumberKind::kE2M1) {
    return WeightFormat::kF32;
  }
  switch (choice.kind) {
    case NumberKind::kE4M3:
      if (AreWhole(choice, kFloat8Columns)) {
        return WeightFormat::kF8_E4M3;
      }
      return choice.range == ScaleRange::kExponents && AreWhole(choice, kBlockColumns)
                 ? WeightFormat::kMXFP8
                 : WeightFormat::kF32;
    case NumberKind::kE5M2:
      return AreWhole(choice, kFloat8Columns) ? WeightFormat::kF8_E5M2 : WeightFormat::kF32;
    case NumberKind::kE2M1:
      return FourBitFormat(choice);
    case NumberKind::kNF4:
      return AreWhole(choice, kLookUpColumns) ? WeightFormat::kNF4 : WeightFormat::kF32;
    case NumberKind::kFP4:
      return AreWhole(choice, kLookUpColumns) ? WeightFormat::kFP4 : WeightFormat::kF32;
    case NumberKind::kInteger:
      return WeightFormat::kF32;
  }
  __builtin_unreachable();
}

bool IsBlockScale(float scale) { return scale >= 0 && scale < 0x1p100F; }

uint8_t ZeroCode(NumberKind kind) { return kind == NumberKind::kNF4 ? 7 : 0; }

void StoreNumberGroup(WeightFormat format, const NumberGroup& group, int64_t column,
                      std::byte* row) {
  if (format == WeightFormat::kF8_E4M3) {
    StoreFloat8<kernels::WeightF8_E4M3>(group, column, row);
  } else if (format == WeightFormat::kF8_E5M2) {
    StoreFloat8<kernels::WeightF8_E5M2>(group, column, row);
  } else if (format == WeightFormat::kNF4) {
    StoreLookUp4<kernels::WeightNF4>(group, column, row);
  } else if (format == WeightFormat::kFP4) {
    StoreLookUp4<kernels::WeightFP4>(group, column, row);
  } else if (format == WeightFormat::kNVFP4_MUL) {
    StoreTwoLevels<kernels::WeightNVFP4_MUL>(group, column, row);
  } else if (format == WeightFormat::kNVFP4_DIV) {
    StoreTwoLevels<kernels::WeightNVFP4_DIV>(group, column, row);
  } else {
    CHECK(format == WeightFormat::kMXFP8);
    StoreMxfp8(group, column, row);
  }
}

}  // namespace trireme::weights
