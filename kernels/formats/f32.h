// F32: IEEE 754 binary32, little-endian.
#ifndef TRIREME_KERNELS_FORMATS_F32_H_
#define TRIREME_KERNELS_FORMATS_F32_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"

namespace trireme::kernels {

struct WeightF32 {
  static constexpr WeightFormat kFormat = WeightFormat::kF32;

  float stored;

  float Value(int /*index*/) const { return stored; }
};
static_assert(sizeof(WeightF32) == InfoOf(WeightF32::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_F32_H_
