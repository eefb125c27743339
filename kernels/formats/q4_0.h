// Q4_0: 32 values of 4 bits and a half scale; value = (code - 8) * scale.
#ifndef TRIREME_KERNELS_FORMATS_Q4_0_H_
#define TRIREME_KERNELS_FORMATS_Q4_0_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightQ4_0 {
  static constexpr WeightFormat kFormat = WeightFormat::kQ4_0;
  static constexpr GroupTraits kTraits = {.zero_point = 8, .code_bits = 4};

  uint16_t scale;       // half
  uint8_t nibbles[16];  // value i low, value i + 16 high

  int Code(int i) const {
    const int nibble = i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
    return nibble;
  }
  float Value(int i) const { return static_cast<float>(Code(i) - 8) * HalfToFloat(scale); }
  WeightGroup Group(int /*group_index*/) const {
    WeightGroup group;
    for (int i = 0; i < 16; i += 4) {
      const uint32_t pairs = LoadFour(nibbles + i);
      StoreFour(group.codes + i, pairs & 0x0F0F0F0FU);
      StoreFour(group.codes + 16 + i, pairs >> 4 & 0x0F0F0F0FU);
    }
    group.scale_bits = scale;
    return group;
  }
};
static_assert(sizeof(WeightQ4_0) == InfoOf(WeightQ4_0::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_Q4_0_H_
