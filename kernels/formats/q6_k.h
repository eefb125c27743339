// Q6_K: a superblock of 16 runs of 16 values of 6 bits with signed 8-bit factors;
// value = (scale * S) * (code - 32).
#ifndef TRIREME_KERNELS_FORMATS_Q6_K_H_
#define TRIREME_KERNELS_FORMATS_Q6_K_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightQ6_K {
  static constexpr WeightFormat kFormat = WeightFormat::kQ6_K;
  static constexpr GroupTraits kTraits = {
      .zero_point = 32, .code_bits = 6, .scales = ScaleKind::kHalfGroupFactors};

  uint8_t nibbles[128];
  uint8_t high_pairs[64];
  int8_t factors[16];
  uint16_t scale;  // half

  int Code(int i) const {
    const int half = i / 128;
    const int group = i % 128 / 32;
    const int lane = i % 32;
    const int byte = nibbles[64 * half + 32 * (group % 2) + lane];
    const int low = group < 2 ? byte & 15 : byte >> 4;
    return low | ((high_pairs[32 * half + lane] >> (2 * group)) & 3) << 4;
  }
  float Value(int i) const {
    return (HalfToFloat(scale) * static_cast<float>(factors[i / 16])) *
           static_cast<float>(Code(i) - 32);
  }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    const int half = group_index / 4;
    const int shift = group_index % 4 * 2;
    for (int i = 0; i < 32; i += 4) {
      const uint32_t pairs = LoadFour(nibbles + half * 64 + group_index % 2 * 32 + i);
      const uint32_t low = pairs >> (shift < 4 ? 0 : 4) & 0x0F0F0F0FU;
      const uint32_t high = LoadFour(high_pairs + half * 32 + i) >> shift & 0x03030303U;
      StoreFour(group.codes + i, low | high << 4);
    }
    group.scale_bits = scale;
    group.factors[0] = static_cast<uint8_t>(factors[2 * group_index]);
    group.factors[1] = static_cast<uint8_t>(factors[2 * group_index + 1]);
    return group;
  }
};
static_assert(sizeof(WeightQ6_K) == InfoOf(WeightQ6_K::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_Q6_K_H_
