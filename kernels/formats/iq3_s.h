// IQ3_S: a superblock of 8 groups of eight runs of 4 values; a run is an entry of a grid of 512
// with 4 bits of signs, a group has a 4-bit factor; value = scale * (2 S + 1) * magnitude * sign.
#ifndef TRIREME_KERNELS_FORMATS_IQ3_S_H_
#define TRIREME_KERNELS_FORMATS_IQ3_S_H_

#include <cstdint>

#include "kernels/formats/iq_grids.h"
#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

struct WeightIQ3_S {
  static constexpr WeightFormat kFormat = WeightFormat::kIQ3_S;
  static constexpr GroupTraits kTraits = {.zero_point = 16,
                                          .code_bits = 4,
                                          .scales = ScaleKind::kFactor,
                                          .codebook = Codebook::kGrid3S};

  uint16_t scale;         // half
  uint8_t low_index[64];  // of a run's entry
  uint8_t high_index[8];  // a bit for each run
  uint8_t signs[32];      // of two runs
  uint8_t factors[4];     // S of two groups, low and high

  int Factor(int group_index) const {
    return 2 * ((factors[group_index / 2] >> (group_index % 2 * 4)) & 15) + 1;
  }
  // Signs of the run in bits 0..3.
  GridRun Run(int run) const {
    const int high = (high_index[run / 8] >> (run % 8)) & 1;
    return {kGrid3S[low_index[run] | high << 8],
            static_cast<uint8_t>(signs[run / 2] >> (run % 2 * 4))};
  }
  float Value(int i) const {
    const GridRun run = Run(i / 4);
    return HalfToFloat(scale) * static_cast<float>(Factor(i / 32)) *
           static_cast<float>(2 * Grid3Digit(run, i % 4) + 1) * SignOf(run, i % 4);
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
static_assert(sizeof(WeightIQ3_S) == InfoOf(WeightIQ3_S::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_IQ3_S_H_
