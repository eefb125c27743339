// Q5_1: 32 values of 5 bits, a half scale and a half minimum; value = code * scale + minimum.
#ifndef TRIREME_KERNELS_FORMATS_Q5_1_H_
#define TRIREME_KERNELS_FORMATS_Q5_1_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightQ5_1 {
  static constexpr WeightFormat kFormat = WeightFormat::kQ5_1;
  static constexpr GroupTraits kTraits = {.zero_point = 0, .code_bits = 5, .has_minimum = true};

  uint16_t scale;        // half
  uint16_t minimum;      // half
  uint8_t high_bits[4];  // bit i of the little-endian word belongs to value i
  uint8_t nibbles[16];   // value i low, value i + 16 high

  int Code(int i) const {
    const int nibble = i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
    return nibble | ((high_bits[i / 8] >> (i % 8)) & 1) << 4;
  }
  float Value(int i) const {
    return static_cast<float>(Code(i)) * HalfToFloat(scale) + HalfToFloat(minimum);
  }
  WeightGroup Group(int /*group_index*/) const {
    WeightGroup group;
    for (int i = 0; i < 16; i += 4) {
      const uint32_t pairs = LoadFour(nibbles + i);
      const uint32_t low_bits = SpreadFourBits(high_bits[i / 8] >> (i % 8));
      const uint32_t more_bits = SpreadFourBits(high_bits[2 + i / 8] >> (i % 8));
      StoreFour(group.codes + i, (pairs & 0x0F0F0F0FU) | low_bits << 4);
      StoreFour(group.codes + 16 + i, (pairs >> 4 & 0x0F0F0F0FU) | more_bits << 4);
    }
    group.scale_bits = scale;
    group.minimum_bits = minimum;
    return group;
  }
};
static_assert(sizeof(WeightQ5_1) == InfoOf(WeightQ5_1::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_Q5_1_H_
