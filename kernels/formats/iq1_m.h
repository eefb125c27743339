// IQ1_M: a superblock of 32 runs of 8 values; a run is an entry of the grid of IQ1_S and the sign
// of a shift, two runs have a 3-bit factor; value = scale * (2 S + 1) * (entry +- 1/8).
#ifndef TRIREME_KERNELS_FORMATS_IQ1_M_H_
#define TRIREME_KERNELS_FORMATS_IQ1_M_H_

#include <cstdint>

#include "kernels/formats/iq_grids.h"
#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightIQ1_M {
  static constexpr WeightFormat kFormat = WeightFormat::kIQ1_M;
  static constexpr GroupTraits kTraits = {.zero_point = 16,
                                          .code_bits = 3,
                                          .scales = ScaleKind::kHalfGroupFactors,
                                          .codebook = Codebook::kGrid1,
                                          .scale_exponent = -3};

  uint8_t low_index[32];  // of a run's entry
  uint8_t run_bits[16];   // of two runs: three high bits of the entry and the shift's sign
  uint16_t factors[4];    // four times three bits of S for two runs; four bits of the half scale

  uint16_t Scale() const {
    return static_cast<uint16_t>(factors[0] >> 12 | factors[1] >> 12 << 4 | factors[2] >> 12 << 8 |
                                 factors[3] >> 12 << 12);
  }
  int Factor(int half_group) const {
    return 2 * ((factors[half_group / 4] >> (half_group % 4 * 3)) & 7) + 1;
  }
  // All bits of the signs are the shift's.
  GridRun Run(int run) const {
    const int bits = run_bits[run / 2] >> (run % 2 * 4);
    return {kGrid1S[low_index[run] | (bits & 7) << 8],
            static_cast<uint8_t>((bits & 8) != 0 ? 0xFF : 0)};
  }
  float Value(int i) const {
    const GridRun run = Run(i / 8);
    const float entry = static_cast<float>(Grid2Digit(run, i % 8) - 1);
    return (HalfToFloat(Scale()) * static_cast<float>(Factor(i / 16))) *
           (entry + 0.125F * SignOf(run, i % 8));
  }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    for (int l = 0; l < 4; ++l) {
      StoreGrid2(Run(group_index * 4 + l), group.codes + 8 * l);
    }
    group.scale_bits = Scale();
    group.factors[0] = static_cast<uint8_t>(Factor(2 * group_index));
    group.factors[1] = static_cast<uint8_t>(Factor(2 * group_index + 1));
    return group;
  }
};
static_assert(sizeof(WeightIQ1_M) == InfoOf(WeightIQ1_M::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_IQ1_M_H_
