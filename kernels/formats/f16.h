// F16: IEEE 754 binary16, little-endian.
#ifndef TRIREME_KERNELS_FORMATS_F16_H_
#define TRIREME_KERNELS_FORMATS_F16_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightF16 {
  static constexpr WeightFormat kFormat = WeightFormat::kF16;

  uint16_t stored;

  float Value(int /*index*/) const { return HalfToFloat(stored); }
};
static_assert(sizeof(WeightF16) == InfoOf(WeightF16::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_F16_H_
