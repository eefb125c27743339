// IQ4_XS: a superblock of 8 groups of 32 indices into the codebook of IQ4_NL with 6-bit factors;
// value = (scale * (S - 32)) * entry.
#ifndef TRIREME_KERNELS_FORMATS_IQ4_XS_H_
#define TRIREME_KERNELS_FORMATS_IQ4_XS_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightIQ4_XS {
  static constexpr WeightFormat kFormat = WeightFormat::kIQ4_XS;
  static constexpr GroupTraits kTraits = {.zero_point = 128,
                                          .code_bits = 4,
                                          .scales = ScaleKind::kFactor,
                                          .codebook = Codebook::kNonLinear};

  uint16_t scale;           // half
  uint8_t high_factors[2];  // 2 bits of S for each group, the first lowest
  uint8_t low_factors[4];   // 4 bits of S for each group
  uint8_t nibbles[128];     // 16 bytes for a group: value i low, value i + 16 high

  int Factor(int group_index) const {
    const int low = (low_factors[group_index / 2] >> (group_index % 2 * 4)) & 15;
    const int high = (high_factors[group_index / 4] >> (group_index % 4 * 2)) & 3;
    return (low | high << 4) - 32;
  }

  int Code(int i) const {
    const int byte = nibbles[16 * (i / 32) + i % 16];
    return i % 32 < 16 ? byte & 15 : byte >> 4;
  }
  float Value(int i) const {
    return (HalfToFloat(scale) * static_cast<float>(Factor(i / 32))) *
           static_cast<float>(ValuesOf(Codebook::kNonLinear).values[Code(i)]);
  }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    for (int i = 0; i < 16; i += 4) {
      const uint32_t pairs = LoadFour(nibbles + group_index * 16 + i);
      StoreFour(group.codes + i, pairs & 0x0F0F0F0FU);
      StoreFour(group.codes + 16 + i, pairs >> 4 & 0x0F0F0F0FU);
    }
    group.scale_bits = scale;
    group.factors[0] = static_cast<uint8_t>(Factor(group_index));
    return group;
  }
};
static_assert(sizeof(WeightIQ4_XS) == InfoOf(WeightIQ4_XS::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_IQ4_XS_H_
