// Q3_K: a superblock of 16 runs of 16 values of 3 bits with 6-bit factors;
// value = (scale * (S - 32)) * (code - 4).
#ifndef TRIREME_KERNELS_FORMATS_Q3_K_H_
#define TRIREME_KERNELS_FORMATS_Q3_K_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightQ3_K {
  static constexpr WeightFormat kFormat = WeightFormat::kQ3_K;
  static constexpr GroupTraits kTraits = {
      .zero_point = 4, .code_bits = 3, .scales = ScaleKind::kHalfGroupFactors};

  uint8_t high_bits[32];  // bit j of byte i belongs to value i of group j
  uint8_t pairs[64];      // 32 bytes for four groups, the first in the lowest bits
  uint8_t factors[12];  // 8 bytes with the low 4 bits of S, runs j and j + 8; then the high 2 bits
  uint16_t scale;       // half

  int Factor(int run) const {
    const int low = run < 8 ? factors[run] & 15 : factors[run - 8] >> 4;
    const int high = (factors[8 + run % 4] >> (run / 4 * 2)) & 3;
    return (low | high << 4) - 32;
  }

  int Code(int i) const {
    const int low = (pairs[32 * (i / 128) + i % 32] >> (i % 128 / 32 * 2)) & 3;
    return low | ((high_bits[i % 32] >> (i / 32)) & 1) << 2;
  }
  float Value(int i) const {
    return (HalfToFloat(scale) * static_cast<float>(Factor(i / 16))) *
           static_cast<float>(Code(i) - 4);
  }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    for (int i = 0; i < 32; i += 4) {
      const uint32_t low = LoadFour(pairs + group_index / 4 * 32 + i) >> (group_index % 4 * 2);
      const uint32_t high = LoadFour(high_bits + i) >> group_index & 0x01010101U;
      StoreFour(group.codes + i, (low & 0x03030303U) | high << 2);
    }
    group.scale_bits = scale;
    group.factors[0] = static_cast<uint8_t>(Factor(2 * group_index));
    group.factors[1] = static_cast<uint8_t>(Factor(2 * group_index + 1));
    return group;
  }
};
static_assert(sizeof(WeightQ3_K) == InfoOf(WeightQ3_K::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_Q3_K_H_
