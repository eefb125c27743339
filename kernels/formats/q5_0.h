// Q5_0: 32 values of 5 bits and a half scale; value = (code - 16) * scale.
#ifndef TRIREME_KERNELS_FORMATS_Q5_0_H_
#define TRIREME_KERNELS_FORMATS_Q5_0_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightQ5_0 {
  static constexpr WeightFormat kFormat = WeightFormat::kQ5_0;
  static constexpr GroupTraits kTraits = {.zero_point = 16, .code_bits = 5};

  uint16_t scale;        // half
  uint8_t high_bits[4];  // bit i of the little-endian word belongs to value i
  uint8_t nibbles[16];   // value i low, value i + 16 high

  int Code(int i) const {
    const int nibble = i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
    return nibble | ((high_bits[i / 8] >> (i % 8)) & 1) << 4;
  }
  float Value(int i) const { return static_cast<float>(Code(i) - 16) * HalfToFloat(scale); }
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
    return group;
  }
};
static_assert(sizeof(WeightQ5_0) == InfoOf(WeightQ5_0::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_Q5_0_H_
