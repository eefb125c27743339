// IQ2_S: a superblock of 32 runs of 8 values; a run is an entry of a grid of 1024 with 8 bits of
// signs, two runs have a 4-bit factor; value = scale * (2 S + 1) / 8 * magnitude * sign. Packed as
// IQ2_XS is.
#ifndef TRIREME_KERNELS_FORMATS_IQ2_S_H_
#define TRIREME_KERNELS_FORMATS_IQ2_S_H_

#include <cstdint>

#include "kernels/formats/iq_grids.h"
#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightIQ2_S {
  static constexpr WeightFormat kFormat = WeightFormat::kIQ2_S;
  static constexpr GroupTraits kTraits = {.zero_point = 64,
                                          .code_bits = 3,
                                          .scales = ScaleKind::kHalfGroupFactors,
                                          .codebook = Codebook::kGrid2,
                                          .scale_exponent = -3};

  uint16_t scale;         // half
  uint8_t low_index[32];  // of a run's entry
  uint8_t signs[32];      // of a run
  uint8_t high_index[8];  // two bits for each run
  uint8_t factors[8];     // S of two runs low, of the next two high

  int Factor(int half_group) const {
    return 2 * ((factors[half_group / 2] >> (half_group % 2 * 4)) & 15) + 1;
  }
  GridRun Run(int run) const {
    const int high = (high_index[run / 4] >> (run % 4 * 2)) & 3;
    return {kGrid2S[low_index[run] | high << 8], signs[run]};
  }
  float Value(int i) const {
    constexpr float kMagnitudes[3] = {8, 25, 43};
    const GridRun run = Run(i / 8);
    return HalfToFloat(scale) * (static_cast<float>(Factor(i / 16)) / 8) *
           kMagnitudes[Grid2Digit(run, i % 8)] * SignOf(run, i % 8);
  }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    for (int l = 0; l < 4; ++l) {
      StoreGrid2(Run(group_index * 4 + l), group.codes + 8 * l);
    }
    group.scale_bits = scale;
    group.factors[0] = static_cast<uint8_t>(Factor(2 * group_index));
    group.factors[1] = static_cast<uint8_t>(Factor(2 * group_index + 1));
    return group;
  }
};
static_assert(sizeof(WeightIQ2_S) == InfoOf(WeightIQ2_S::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_IQ2_S_H_
