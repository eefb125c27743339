// NVFP4_MUL and NVFP4_DIV: 256 numbers of 4 bits (E2M1) with an unsigned E4M3 scale for each 16 and
// a float32 scale, which multiplies or divides the others; value = 2 * number * ((scale / 2) *
// tensor scale), or / tensor scale, each product rounded. No files have such blocks: they hold
// matrices whose second scale, of the whole tensor, is a tensor of its own.
#ifndef TRIREME_KERNELS_FORMATS_NVFP4_SCALED_H_
#define TRIREME_KERNELS_FORMATS_NVFP4_SCALED_H_

#include <cstdint>
#include <cstring>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

template <WeightFormat kStored, ScaleKind kScales>
struct WeightScaledNVFP4 {
  static constexpr WeightFormat kFormat = kStored;
  static constexpr GroupTraits kTraits = {
      .zero_point = 0, .code_bits = 4, .scales = kScales, .numbers = NumberKind::kE2M1};
  static constexpr NumberTable kTable = NumbersOf(NumberKind::kE2M1);

  float tensor_scale;
  uint8_t scales[16];      // of 16 values, below 128
  uint8_t nibbles[8][16];  // of each 32 values: value i low, value i + 16 high

  int Code(int i) const {
    const int byte = nibbles[i / 32][i % 16];
    return i % 32 < 16 ? byte & 15 : byte >> 4;
  }
  float Value(int i) const {
    const float half = HalfOfE4M3(scales[i / 16] & 0x7F);
    const float scale =
        kScales == ScaleKind::kHalfGroupE4M3Mul ? half * tensor_scale : half / tensor_scale;
    return kTable.numbers[Code(i)] * scale;
  }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    for (int i = 0; i < 16; i += 4) {
      const uint32_t pairs = LoadFour(nibbles[group_index] + i);
      StoreFour(group.codes + i, pairs & 0x0F0F0F0FU);
      StoreFour(group.codes + 16 + i, pairs >> 4 & 0x0F0F0F0FU);
    }
    group.factors[0] = scales[2 * group_index] & 0x7F;
    group.factors[1] = scales[2 * group_index + 1] & 0x7F;
    group.scale = tensor_scale;
    return group;
  }
};
using WeightNVFP4_MUL = WeightScaledNVFP4<WeightFormat::kNVFP4_MUL, ScaleKind::kHalfGroupE4M3Mul>;
using WeightNVFP4_DIV = WeightScaledNVFP4<WeightFormat::kNVFP4_DIV, ScaleKind::kHalfGroupE4M3Div>;
static_assert(sizeof(WeightNVFP4_MUL) == InfoOf(WeightNVFP4_MUL::kFormat).storage_bytes);
static_assert(sizeof(WeightNVFP4_DIV) == InfoOf(WeightNVFP4_DIV::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_NVFP4_SCALED_H_
