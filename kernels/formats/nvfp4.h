// NVFP4: 64 numbers of 4 bits (E2M1) with an unsigned E4M3 scale for each 16; value = 2 * number *
// (scale / 2). The second scale, of the whole tensor, is a tensor of its own in a file.
#ifndef TRIREME_KERNELS_FORMATS_NVFP4_H_
#define TRIREME_KERNELS_FORMATS_NVFP4_H_

#include <cstdint>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightNVFP4 {
  static constexpr WeightFormat kFormat = WeightFormat::kNVFP4;
  static constexpr GroupTraits kTraits = {.zero_point = 16,
                                          .code_bits = 4,
                                          .scales = ScaleKind::kHalfGroupE4M3,
                                          .codebook = Codebook::kE2M1};

  uint8_t scales[4];    // of 16 values; 0x7F is zero, else the highest bit is ignored
  uint8_t nibbles[32];  // 8 bytes for 16 values: value i low, value i + 8 high

  int Code(int i) const {
    const int byte = nibbles[i / 16 * 8 + i % 8];
    return i % 16 < 8 ? byte & 15 : byte >> 4;
  }
  // As an E4M3 number without a special case: 0xFF counts as 480.
  uint8_t ScaleCode(int run) const {
    return scales[run] == 0x7F ? uint8_t{0} : static_cast<uint8_t>(scales[run] & 0x7F);
  }
  float Value(int i) const {
    return static_cast<float>(ValuesOf(Codebook::kE2M1).values[Code(i)]) *
           HalfOfE4M3(ScaleCode(i / 16));
  }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    for (int h = 0; h < 2; ++h) {
      const int run = 2 * group_index + h;
      for (int i = 0; i < 8; i += 4) {
        const uint32_t pairs = LoadFour(nibbles + run * 8 + i);
        StoreFour(group.codes + 16 * h + i, pairs & 0x0F0F0F0FU);
        StoreFour(group.codes + 16 * h + 8 + i, pairs >> 4 & 0x0F0F0F0FU);
      }
      group.factors[h] = ScaleCode(run);
    }
    return group;
  }
};
static_assert(sizeof(WeightNVFP4) == InfoOf(WeightNVFP4::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_NVFP4_H_
