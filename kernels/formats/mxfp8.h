// MXFP8: 32 E4M3 numbers and an exponent byte (E8M0); value = number * 2^(exponent - 127), as the
// OCP Microscaling specification, version 1.0, has it. No files have such blocks: publishers store
// codes and exponents apart.
#ifndef TRIREME_KERNELS_FORMATS_MXFP8_H_
#define TRIREME_KERNELS_FORMATS_MXFP8_H_

#include <cstdint>
#include <cstring>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightMXFP8 {
  static constexpr WeightFormat kFormat = WeightFormat::kMXFP8;
  static constexpr GroupTraits kTraits = {.zero_point = 0,
                                          .code_bits = 8,
                                          .scales = ScaleKind::kExponent,
                                          .scale_exponent = 9,
                                          .numbers = NumberKind::kE4M3};

  uint8_t exponent;
  uint8_t codes[32];

  float Value(int i) const {
    return E4M3By256(codes[i]) * (HalfOfE8M0(exponent) * PowerOfTwo(kTraits.scale_exponent));
  }
  WeightGroup Group(int /*group_index*/) const {
    WeightGroup group;
    std::memcpy(group.codes, codes, sizeof(group.codes));
    group.factors[0] = exponent;
    return group;
  }
};
static_assert(sizeof(WeightMXFP8) == InfoOf(WeightMXFP8::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_MXFP8_H_
