#include "runtime/weights/quantized/storage_blocks.h"

#include <bit>
#include <cstring>

#include "kernels/formats/mxfp4.h"
#include "kernels/formats/q4_0.h"
#include "kernels/formats/q5_0.h"
#include "kernels/formats/q8_0.h"
#include "kernels/formats/tq2_0.h"
#include "kernels/scalar_types.h"
#include "runtime/base/check.h"

namespace trireme::weights {
namespace {

using kernels::WeightFormat;

// Code i in the low nibble of byte i, code i + 16 in the high one.
void StoreNibbles(const int (&numbers)[kBlockColumns], int offset, uint8_t (&nibbles)[16]) {
  for (int i = 0; i < 16; ++i) {
    const int low = (numbers[i] + offset) & 15;
    const int high = (numbers[i + 16] + offset) & 15;
    nibbles[i] = static_cast<uint8_t>(low | high << 4);
  }
}

kernels::WeightQ4_0 FourBits(const int (&numbers)[kBlockColumns], float scale) {
  kernels::WeightQ4_0 block = {.scale = kernels::FloatToHalf(scale)};
  StoreNibbles(numbers, 8, block.nibbles);
  return block;
}

kernels::WeightQ5_0 FiveBits(const int (&numbers)[kBlockColumns], float scale) {
  kernels::WeightQ5_0 block = {.scale = kernels::FloatToHalf(scale)};
  StoreNibbles(numbers, 16, block.nibbles);
  for (int i = 0; i < kBlockColumns; ++i) {
    block.high_bits[i / 8] =
        static_cast<uint8_t>(block.high_bits[i / 8] | (numbers[i] + 16) >> 4 << (i % 8));
  }
  return block;
}

kernels::WeightQ8_0 EightBits(const int (&numbers)[kBlockColumns], float scale) {
  kernels::WeightQ8_0 block = {.scale = kernels::FloatToHalf(scale)};
  for (int i = 0; i < kBlockColumns; ++i) {
    block.values[i] = static_cast<int8_t>(numbers[i]);
  }
  return block;
}

// `scale` is 2^(exponent - 127).
kernels::WeightMXFP4 E2M1Codes(const int (&codes)[kBlockColumns], float scale) {
  kernels::WeightMXFP4 block = {.exponent =
                                    static_cast<uint8_t>(std::bit_cast<uint32_t>(scale) >> 23)};
  StoreNibbles(codes, 0, block.nibbles);
  return block;
}

template <typename Block>
void StoreBlock(const Block& block, std::byte* target) {
  std::memcpy(target, &block, sizeof(block));
}

// One group of a superblock that other calls fill as well.
void StoreTernary(const int (&numbers)[kBlockColumns], float scale, int64_t column,
                  std::byte* block_bytes) {
  kernels::WeightTQ2_0 block;
  std::memcpy(&block, block_bytes, sizeof(block));
  block.scale = kernels::FloatToHalf(scale);
  const int64_t group = column / kBlockColumns % 8;
  const auto shift = static_cast<int>(group % 4 * 2);
  for (int i = 0; i < kBlockColumns; ++i) {
    uint8_t& pairs = block.pairs[group / 4 * 32 + i];
    pairs = static_cast<uint8_t>((pairs & ~(3 << shift)) | (numbers[i] + 1) << shift);
  }
  std::memcpy(block_bytes, &block, sizeof(block));
}

}  // namespace

bool IsHalf(float scale) { return kernels::HalfToFloat(kernels::FloatToHalf(scale)) == scale; }

WeightFormat IntegerFormat(int least, int most) {
  if (least >= -1 && most <= 1) {
    return WeightFormat::kTQ2_0;
  }
  if (least >= -8 && most <= 7) {
    return WeightFormat::kQ4_0;
  }
  if (least >= -16 && most <= 15) {
    return WeightFormat::kQ5_0;
  }
  return least >= -128 && most <= 127 ? WeightFormat::kQ8_0 : WeightFormat::kF32;
}

void StoreNumbers(WeightFormat format, const int (&numbers)[kBlockColumns], float scale,
                  int64_t column, std::byte* row) {
  const kernels::WeightFormatInfo& info = kernels::InfoOf(format);
  std::byte* const target = row + column / info.storage_values * info.storage_bytes;
  if (format == WeightFormat::kTQ2_0) {
    StoreTernary(numbers, scale, column, target);
  } else if (format == WeightFormat::kQ4_0) {
    StoreBlock(FourBits(numbers, scale), target);
  } else if (format == WeightFormat::kQ5_0) {
    StoreBlock(FiveBits(numbers, scale), target);
  } else if (format == WeightFormat::kQ8_0) {
    StoreBlock(EightBits(numbers, scale), target);
  } else {
    CHECK(format == WeightFormat::kMXFP4);
    StoreBlock(E2M1Codes(numbers, scale), target);
  }
}

int64_t BlockBytes(WeightFormat format, int64_t columns) {
  const kernels::WeightFormatInfo& info = kernels::InfoOf(format);
  return (columns + info.storage_values - 1) / info.storage_values * info.storage_bytes;
}

}  // namespace trireme::weights
