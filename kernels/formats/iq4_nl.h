// IQ4_NL: 32 indices of 4 bits into a codebook of 16 and a half scale; value = scale * entry.
#ifndef TRIREME_KERNELS_FORMATS_IQ4_NL_H_
#define TRIREME_KERNELS_FORMATS_IQ4_NL_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightIQ4_NL {
  static constexpr WeightFormat kFormat = WeightFormat::kIQ4_NL;
  static constexpr GroupTraits kTraits = {
      .zero_point = 128, .code_bits = 4, .codebook = Codebook::kNonLinear};

  uint16_t scale;       // half
  uint8_t nibbles[16];  // value i low, value i + 16 high

  int Code(int i) const { return i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4; }
  float Value(int i) const {
    return HalfToFloat(scale) * static_cast<float>(ValuesOf(Codebook::kNonLinear).values[Code(i)]);
  }
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
static_assert(sizeof(WeightIQ4_NL) == InfoOf(WeightIQ4_NL::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_IQ4_NL_H_
