// TQ2_0: a superblock of 256 values of 2 bits and a half scale; value = (code - 1) * scale.
#ifndef TRIREME_KERNELS_FORMATS_TQ2_0_H_
#define TRIREME_KERNELS_FORMATS_TQ2_0_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightTQ2_0 {
  static constexpr WeightFormat kFormat = WeightFormat::kTQ2_0;
  static constexpr GroupTraits kTraits = {
      .zero_point = 1, .code_bits = 2, .scales = ScaleKind::kSuperblockHalf};

  uint8_t pairs[64];  // 32 bytes for four groups, the first in the lowest bits
  uint16_t scale;     // half

  int Code(int i) const { return (pairs[32 * (i / 128) + i % 32] >> (i % 128 / 32 * 2)) & 3; }
  float Value(int i) const { return static_cast<float>(Code(i) - 1) * HalfToFloat(scale); }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    for (int i = 0; i < 32; i += 4) {
      const uint32_t four = LoadFour(pairs + group_index / 4 * 32 + i);
      StoreFour(group.codes + i, four >> (group_index % 4 * 2) & 0x03030303U);
    }
    group.scale_bits = scale;
    return group;
  }
};
static_assert(sizeof(WeightTQ2_0) == InfoOf(WeightTQ2_0::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_TQ2_0_H_
