// Q5_K: a superblock of 8 groups of 32 values of 5 bits with 6-bit scale and minimum factors;
// value = (scale * S) * code - minimum * M.
#ifndef TRIREME_KERNELS_FORMATS_Q5_K_H_
#define TRIREME_KERNELS_FORMATS_Q5_K_H_

#include <cstdint>

#include "kernels/formats/superblock_scales.h"
#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightQ5_K {
  static constexpr WeightFormat kFormat = WeightFormat::kQ5_K;
  static constexpr GroupTraits kTraits = {
      .zero_point = 0, .code_bits = 5, .scales = ScaleKind::kFactor, .has_minimum = true};

  uint16_t scale;    // half
  uint16_t minimum;  // half
  uint8_t factors[12];
  uint8_t high_bits[32];  // bit j of byte i belongs to value i of group j
  uint8_t nibbles[128];   // 32 bytes for two groups, the even one low

  int Code(int i) const {
    const int byte = nibbles[32 * (i / 64) + i % 32];
    return ((i / 32) % 2 == 0 ? byte & 15 : byte >> 4) | ((high_bits[i % 32] >> (i / 32)) & 1) << 4;
  }
  float Value(int i) const {
    const SuperblockFactors factor = FactorsOf(factors, i / 32);
    return (HalfToFloat(scale) * static_cast<float>(factor.scale)) * static_cast<float>(Code(i)) -
           HalfToFloat(minimum) * static_cast<float>(factor.minimum);
  }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    const int shift = group_index % 2 * 4;
    for (int i = 0; i < 32; i += 4) {
      const uint32_t pairs = LoadFour(nibbles + group_index / 2 * 32 + i);
      const uint32_t bits = LoadFour(high_bits + i) >> group_index & 0x01010101U;
      StoreFour(group.codes + i, (pairs >> shift & 0x0F0F0F0FU) | bits << 4);
    }
    const SuperblockFactors factor = FactorsOf(factors, group_index);
    group.scale_bits = scale;
    group.minimum_bits = minimum;
    group.factors[0] = factor.scale;
    group.factors[1] = factor.minimum;
    return group;
  }
};
static_assert(sizeof(WeightQ5_K) == InfoOf(WeightQ5_K::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_Q5_K_H_
