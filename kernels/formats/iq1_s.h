// IQ1_S: a superblock of 8 groups of four runs of 8 values; a run is an entry of a grid of 2048 of
// -1, 0 and 1; a group has a 3-bit factor and the sign of a shift; value = scale * (2 S + 1) *
// (entry +- 1/8).
#ifndef TRIREME_KERNELS_FORMATS_IQ1_S_H_
#define TRIREME_KERNELS_FORMATS_IQ1_S_H_

#include <cstdint>

#include "kernels/formats/iq_grids.h"
#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightIQ1_S {
  static constexpr WeightFormat kFormat = WeightFormat::kIQ1_S;
  static constexpr GroupTraits kTraits = {.zero_point = 16,
                                          .code_bits = 3,
                                          .scales = ScaleKind::kFactor,
                                          .codebook = Codebook::kGrid1,
                                          .scale_exponent = -3};

  uint16_t scale;          // half
  uint8_t low_index[32];   // of a run's entry
  uint16_t group_bits[8];  // three high bits for each of four entries, S, and the shift's sign

  int Factor(int group_index) const { return 2 * ((group_bits[group_index] >> 12) & 7) + 1; }
  // All bits of the signs are the shift's.
  GridRun Run(int run) const {
    const int bits = group_bits[run / 4];
    return {kGrid1S[low_index[run] | ((bits >> (run % 4 * 3)) & 7) << 8],
            static_cast<uint8_t>(bits >> 15 != 0 ? 0xFF : 0)};
  }
  float Value(int i) const {
    const GridRun run = Run(i / 8);
    const float entry = static_cast<float>(Grid2Digit(run, i % 8) - 1);
    return (HalfToFloat(scale) * static_cast<float>(Factor(i / 32))) *
           (entry + 0.125F * SignOf(run, i % 8));
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
static_assert(sizeof(WeightIQ1_S) == InfoOf(WeightIQ1_S::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_IQ1_S_H_
