// NF4 and FP4 of bitsandbytes: 64 indices of 4 bits into a table of float32 numbers (NumbersOf) and
// a float32 scale; value = number * scale, rounded once. No files have such blocks: publishers
// store codes and scales apart.
#ifndef TRIREME_KERNELS_FORMATS_NF4_FP4_H_
#define TRIREME_KERNELS_FORMATS_NF4_FP4_H_

#include <cstdint>
#include <cstring>

#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

template <WeightFormat kStored, NumberKind kNumbers>
struct WeightLookUp4 {
  static constexpr WeightFormat kFormat = kStored;
  static constexpr GroupTraits kTraits = {.zero_point = 0,
                                          .code_bits = 4,
                                          .scales = ScaleKind::kSuperblockFloat,
                                          .numbers = kNumbers,
                                          .superblock_groups = 2};
  static constexpr NumberTable kTable = NumbersOf(kNumbers);

  float scale;
  uint8_t nibbles[2][16];  // of each 32 values: value i low, value i + 16 high

  int Code(int i) const {
    const int byte = nibbles[i / 32][i % 16];
    return i % 32 < 16 ? byte & 15 : byte >> 4;
  }
  float Value(int i) const { return kTable.numbers[Code(i)] * scale; }
  WeightGroup Group(int group_index) const {
    WeightGroup group;
    for (int i = 0; i < 16; i += 4) {
      const uint32_t pairs = LoadFour(nibbles[group_index] + i);
      StoreFour(group.codes + i, pairs & 0x0F0F0F0FU);
      StoreFour(group.codes + 16 + i, pairs >> 4 & 0x0F0F0F0FU);
    }
    group.scale = scale;
    return group;
  }
};
using WeightNF4 = WeightLookUp4<WeightFormat::kNF4, NumberKind::kNF4>;
using WeightFP4 = WeightLookUp4<WeightFormat::kFP4, NumberKind::kFP4>;
static_assert(sizeof(WeightNF4) == InfoOf(WeightNF4::kFormat).storage_bytes);
static_assert(sizeof(WeightFP4) == InfoOf(WeightFP4::kFormat).storage_bytes);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_NF4_FP4_H_
