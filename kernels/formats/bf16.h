// BF16: the upper half of a binary32.
#ifndef TRIREME_KERNELS_FORMATS_BF16_H_
#define TRIREME_KERNELS_FORMATS_BF16_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightBF16 {
  static constexpr WeightFormat kFormat = WeightFormat::kBF16;

  uint16_t stored;

  float Value(int /*index*/) const { return BFloat16ToFloat(stored); }
};
static_assert(sizeof(WeightBF16) == InfoOf(WeightBF16::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_BF16_H_
