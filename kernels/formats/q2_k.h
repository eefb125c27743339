// Q2_K: a superblock of 16 runs of 16 values of 2 bits with 4-bit scale and minimum factors;
// value = (scale * S) * code - minimum * M.
#ifndef TRIREME_KERNELS_FORMATS_Q2_K_H_
#define TRIREME_KERNELS_FORMATS_Q2_K_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightQ2_K {
  static constexpr WeightFormat kFormat = WeightFormat::kQ2_K;
  static constexpr GroupTraits kTraits = {
      .zero_point = 0, .code_bits = 2, .scales = ScaleKind::kHalfGroupFactors, .has_minimum = true};

  uint8_t factors[16];  // of a run: S low, M high
  uint8_t pairs[64];    // 32 bytes for four groups, the first in the lowest bits
  uint16_t scale;       // half
  uint16_t minimum;     // half

  int Code(int i) const { return (pairs[32 * (i / 128) + i % 32] >> (i % 128 / 32 * 2)) & 3; }
  float Value(int i) const {
    const int factor = factors[i / 16];
    return (HalfToFloat(scale) * static_cast<float>(factor & 15)) * static_cast<float>(Code(i)) -
           HalfToFloat(minimum) * static_cast<float>(factor >> 4);
  }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    for (int i = 0; i < 32; i += 4) {
      const uint32_t four = LoadFour(pairs + group_index / 4 * 32 + i);
      StoreFour(group.codes + i, four >> (group_index % 4 * 2) & 0x03030303U);
    }
    group.scale_bits = scale;
    group.minimum_bits = minimum;
    group.factors[0] = factors[2 * group_index];
    group.factors[1] = factors[2 * group_index + 1];
    return group;
  }
};
static_assert(sizeof(WeightQ2_K) == InfoOf(WeightQ2_K::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_Q2_K_H_
