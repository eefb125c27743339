// MXFP4: 32 numbers of 4 bits (E2M1) and an exponent byte (E8M0); value = 2 * number *
// 2^(exponent - 128). Also the block of the OCP Microscaling specification, version 1.0.
#ifndef TRIREME_KERNELS_FORMATS_MXFP4_H_
#define TRIREME_KERNELS_FORMATS_MXFP4_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightMXFP4 {
  static constexpr WeightFormat kFormat = WeightFormat::kMXFP4;
  static constexpr GroupTraits kTraits = {.zero_point = 16,
                                          .code_bits = 4,
                                          .scales = ScaleKind::kExponent,
                                          .codebook = Codebook::kE2M1};

  uint8_t exponent;
  uint8_t nibbles[16];  // value i low, value i + 16 high

  int Code(int i) const { return i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4; }
  float Value(int i) const {
    return static_cast<float>(ValuesOf(Codebook::kE2M1).values[Code(i)]) * HalfOfE8M0(exponent);
  }
  WeightGroup Group(int /*group_index*/) const {
    WeightGroup group;
    for (int i = 0; i < 16; i += 4) {
      const uint32_t pairs = LoadFour(nibbles + i);
      StoreFour(group.codes + i, pairs & 0x0F0F0F0FU);
      StoreFour(group.codes + 16 + i, pairs >> 4 & 0x0F0F0F0FU);
    }
    group.factors[0] = exponent;
    return group;
  }
};
static_assert(sizeof(WeightMXFP4) == InfoOf(WeightMXFP4::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_MXFP4_H_
