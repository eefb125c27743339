// Q4_K: a superblock of 8 groups of 32 values of 4 bits with 6-bit scale and minimum factors;
// value = (scale * S) * code - minimum * M.
#ifndef TRIREME_KERNELS_FORMATS_Q4_K_H_
#define TRIREME_KERNELS_FORMATS_Q4_K_H_

#include <cstdint>

#include "kernels/formats/superblock_scales.h"
#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightQ4_K {
  static constexpr WeightFormat kFormat = WeightFormat::kQ4_K;
  static constexpr GroupTraits kTraits = {
      .zero_point = 0, .code_bits = 4, .scales = ScaleKind::kFactor, .has_minimum = true};

  uint16_t scale;    // half
  uint16_t minimum;  // half
  uint8_t factors[12];
  uint8_t nibbles[128];  // 32 bytes for two groups, the even one low

  int Code(int i) const {
    const int byte = nibbles[32 * (i / 64) + i % 32];
    return ((i / 32) % 2 == 0 ? byte & 15 : byte >> 4);
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
      StoreFour(group.codes + i, pairs >> shift & 0x0F0F0F0FU);
    }
    const SuperblockFactors factor = FactorsOf(factors, group_index);
    group.scale_bits = scale;
    group.minimum_bits = minimum;
    group.factors[0] = factor.scale;
    group.factors[1] = factor.minimum;
    return group;
  }
};
static_assert(sizeof(WeightQ4_K) == InfoOf(WeightQ4_K::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_Q4_K_H_
