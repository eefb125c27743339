// TQ1_0: a superblock of 256 digits of base 3, five to a byte, and a half scale;
// value = (digit - 1) * scale. Packed as TQ2_0 is.
#ifndef TRIREME_KERNELS_FORMATS_TQ1_0_H_
#define TRIREME_KERNELS_FORMATS_TQ1_0_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightTQ1_0 {
  static constexpr WeightFormat kFormat = WeightFormat::kTQ1_0;
  static constexpr GroupTraits kTraits = {
      .zero_point = 1, .code_bits = 2, .scales = ScaleKind::kSuperblockHalf};

  uint8_t fives[48];  // digit n of byte m: value 32 n + m of the first 160; then 16 n + m of 80
  uint8_t fours[4];   // digit n of byte m: value 4 n + m of the last 16
  uint16_t scale;     // half

  // A byte is ceil(256 / 243 * the number of its five digits): digit n is what the n-th
  // multiplication by 3 moves out of the low byte.
  static int Digit(uint8_t byte, int n) {
    constexpr int kPowers[5] = {1, 3, 9, 27, 81};
    return (byte * kPowers[n] % 256 * 3) >> 8;
  }
  int Code(int i) const {
    if (i < 160) {
      return Digit(fives[i % 32], i / 32);
    }
    if (i < 240) {
      return Digit(fives[32 + (i - 160) % 16], (i - 160) / 16);
    }
    return Digit(fours[(i - 240) % 4], (i - 240) / 4);
  }
  float Value(int i) const { return static_cast<float>(Code(i) - 1) * HalfToFloat(scale); }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    for (int i = 0; i < 32; ++i) {
      group.codes[i] = static_cast<uint8_t>(Code(32 * group_index + i));
    }
    group.scale_bits = scale;
    return group;
  }
};
static_assert(sizeof(WeightTQ1_0) == InfoOf(WeightTQ1_0::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_TQ1_0_H_
