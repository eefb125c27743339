// F8_E4M3 and F8_E5M2: 128 floating point numbers of 8 bits and a float32 scale; value = number *
// scale, rounded once. No files have such blocks: they hold published matrices whose scales are
// those of the tensor, of rows, or of blocks of whole 128 columns.
#ifndef TRIREME_KERNELS_FORMATS_E4M3_E5M2_H_
#define TRIREME_KERNELS_FORMATS_E4M3_E5M2_H_

#include <cstdint>
#include <cstring>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

template <WeightFormat kStored, NumberKind kNumbers, int kScaleExponent>
struct WeightFloat8 {
  static constexpr WeightFormat kFormat = kStored;
  static constexpr GroupTraits kTraits = {.zero_point = 0,
                                          .code_bits = 8,
                                          .scales = ScaleKind::kSuperblockFloat,
                                          .scale_exponent = kScaleExponent,
                                          .numbers = kNumbers,
                                          .superblock_groups = 4};

  float scale;
  uint8_t codes[128];

  float Value(int i) const {
    const float number =
        kNumbers == NumberKind::kE4M3 ? E4M3By256(codes[i]) : E5M2ToFloat(codes[i]);
    return number * (scale * PowerOfTwo(kScaleExponent));
  }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    std::memcpy(group.codes, codes + 32 * group_index, sizeof(group.codes));
    group.scale = scale;
    return group;
  }
};
using WeightF8_E4M3 = WeightFloat8<WeightFormat::kF8_E4M3, NumberKind::kE4M3, 8>;
using WeightF8_E5M2 = WeightFloat8<WeightFormat::kF8_E5M2, NumberKind::kE5M2, 0>;
static_assert(sizeof(WeightF8_E4M3) == InfoOf(WeightF8_E4M3::kFormat).storage_bytes);
static_assert(sizeof(WeightF8_E5M2) == InfoOf(WeightF8_E5M2::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_E4M3_E5M2_H_
