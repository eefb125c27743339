// IQ2_XXS: a superblock of 8 groups of four runs of 8 values; a run is an entry of a grid of 256
// with 7 bits of signs, a group has a 4-bit factor; value = scale * (2 S + 1) / 8 * magnitude *
// sign.
#ifndef TRIREME_KERNELS_FORMATS_IQ2_XXS_H_
#define TRIREME_KERNELS_FORMATS_IQ2_XXS_H_

#include <cstdint>

#include "kernels/formats/iq_grids.h"
#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightIQ2_XXS {
  static constexpr WeightFormat kFormat = WeightFormat::kIQ2_XXS;
  static constexpr GroupTraits kTraits = {.zero_point = 64,
                                          .code_bits = 3,
                                          .scales = ScaleKind::kFactor,
                                          .codebook = Codebook::kGrid2,
                                          .scale_exponent = -3};

  uint16_t scale;    // half
  uint8_t runs[64];  // 8 bytes for a group: four entries; then four times 7 bits of signs, and S

  uint32_t SignsAndFactor(int group_index) const { return LoadFour(runs + 8 * group_index + 4); }
  int Factor(int group_index) const {
    return 2 * static_cast<int>(SignsAndFactor(group_index) >> 28) + 1;
  }
  GridRun Run(int run) const {
    return {kGrid2XXS[runs[run / 4 * 8 + run % 4]],
            SignsOf(SignsAndFactor(run / 4) >> (run % 4 * 7))};
  }
  float Value(int i) const {
    constexpr float kMagnitudes[3] = {8, 25, 43};
    const GridRun run = Run(i / 8);
    return HalfToFloat(scale) * (static_cast<float>(Factor(i / 32)) / 8) *
           kMagnitudes[Grid2Digit(run, i % 8)] * SignOf(run, i % 8);
  }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    for (int l = 0; l < 4; ++l) {
      StoreGrid2(Run(group_index * 4 + l), group.codes + 8 * l);
    }
    group.scale_bits = scale;
    group.factors[0] = static_cast<uint8_t>(Factor(group_index));
    return group;
  }
};
static_assert(sizeof(WeightIQ2_XXS) == InfoOf(WeightIQ2_XXS::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_IQ2_XXS_H_
