// IQ3_XXS: a superblock of 8 groups of eight runs of 4 values; a run is an entry of a grid of 256,
// two runs have 7 bits of signs, a group has a 4-bit factor; value = scale * (2 S + 1) / 4 *
// magnitude * sign.
#ifndef TRIREME_KERNELS_FORMATS_IQ3_XXS_H_
#define TRIREME_KERNELS_FORMATS_IQ3_XXS_H_

#include <cstdint>

#include "kernels/formats/iq_grids.h"
#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightIQ3_XXS {
  static constexpr WeightFormat kFormat = WeightFormat::kIQ3_XXS;
  static constexpr GroupTraits kTraits = {.zero_point = 64,
                                          .code_bits = 4,
                                          .scales = ScaleKind::kFactor,
                                          .codebook = Codebook::kGrid3XXS,
                                          .scale_exponent = -2};

  uint16_t scale;                 // half
  uint8_t entries[64];            // of a run
  uint8_t signs_and_factors[32];  // 4 bytes for a group: four times 7 bits of signs, and S

  uint32_t SignsAndFactor(int group_index) const {
    return LoadFour(signs_and_factors + 4 * group_index);
  }
  int Factor(int group_index) const {
    return 2 * static_cast<int>(SignsAndFactor(group_index) >> 28) + 1;
  }
  // Signs of the run in bits 0..3.
  GridRun Run(int run) const {
    const uint8_t signs = SignsOf(SignsAndFactor(run / 8) >> (run % 8 / 2 * 7));
    return {kGrid3XXS[entries[run]], static_cast<uint8_t>(signs >> (run % 2 * 4))};
  }
  float Value(int i) const {
    constexpr float kMagnitudes[8] = {4, 12, 20, 28, 36, 44, 52, 62};
    const GridRun run = Run(i / 4);
    return HalfToFloat(scale) * (static_cast<float>(Factor(i / 32)) / 4) *
           kMagnitudes[Grid3Digit(run, i % 4)] * SignOf(run, i % 4);
  }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    for (int l = 0; l < 8; ++l) {
      StoreGrid3(Run(group_index * 8 + l), group.codes + 4 * l);
    }
    group.scale_bits = scale;
    group.factors[0] = static_cast<uint8_t>(Factor(group_index));
    return group;
  }
};
static_assert(sizeof(WeightIQ3_XXS) == InfoOf(WeightIQ3_XXS::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_IQ3_XXS_H_
