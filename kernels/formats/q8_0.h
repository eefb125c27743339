// Q8_0: 32 signed bytes and a half scale; value = byte * scale. The unsigned code is byte + 128.
#ifndef TRIREME_KERNELS_FORMATS_Q8_0_H_
#define TRIREME_KERNELS_FORMATS_Q8_0_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightQ8_0 {
  static constexpr WeightFormat kFormat = WeightFormat::kQ8_0;
  static constexpr GroupTraits kTraits = {.zero_point = 128, .code_bits = 8};

  uint16_t scale;  // half
  int8_t values[32];

  int Code(int i) const { return values[i] + 128; }
  float Value(int i) const { return static_cast<float>(Code(i) - 128) * HalfToFloat(scale); }
  WeightGroup Group(int /*group_index*/) const {
    WeightGroup group;
    for (int i = 0; i < 32; i += 4) {
      StoreFour(group.codes + i, LoadFour(values + i) ^ 0x80808080U);
    }
    group.scale_bits = scale;
    return group;
  }
};
static_assert(sizeof(WeightQ8_0) == InfoOf(WeightQ8_0::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_Q8_0_H_
