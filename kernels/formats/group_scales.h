// The numbers of a group's scale fields, one row at a time: the definition that vector decoders are
// tested against. Not for files of one instruction set.
#ifndef TRIREME_KERNELS_FORMATS_GROUP_SCALES_H_
#define TRIREME_KERNELS_FORMATS_GROUP_SCALES_H_

#include <cstdint>

#include "kernels/formats/weight_group.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {

// weight = (code - zero point) * (scale * half_factors[h]) + minima[h], h the half group; for codes
// of floating point numbers number * (scale * half_factors[h]). All products of scales are exact
// but those of kHalfGroupE4M3Mul and kHalfGroupE4M3Div, which are rounded to float32.
struct GroupScales {
  float scale = 1;
  float half_factors[2] = {1, 1};
  float minima[2] = {0, 0};  // equal where the group has one minimum
};

inline GroupScales ScalesOf(GroupTraits traits, const WeightGroup& group) {
  const float half = HalfToFloat(group.scale_bits) * PowerOfTwo(traits.scale_exponent);
  const float half_minimum = HalfToFloat(group.minimum_bits);
  GroupScales scales;
  switch (traits.scales) {
    case ScaleKind::kGroupHalf:
      scales.scale = half;
      scales.minima[0] = scales.minima[1] = traits.has_minimum ? half_minimum : 0.0F;
      break;
    case ScaleKind::kSuperblockHalf:
      scales.scale = half;
      break;
    case ScaleKind::kFactor:
      scales.scale = half * static_cast<float>(static_cast<int8_t>(group.factors[0]));
      if (traits.has_minimum) {
        scales.minima[0] = scales.minima[1] =
            -(half_minimum * static_cast<float>(static_cast<int8_t>(group.factors[1])));
      }
      break;
    case ScaleKind::kHalfGroupFactors:
      scales.scale = half;
      for (int h = 0; h < 2; ++h) {
        if (traits.has_minimum) {
          scales.half_factors[h] = static_cast<float>(group.factors[h] & 15);
          scales.minima[h] = -(half_minimum * static_cast<float>(group.factors[h] >> 4));
        } else {
          scales.half_factors[h] = static_cast<float>(static_cast<int8_t>(group.factors[h]));
        }
      }
      break;
    case ScaleKind::kExponent:
      scales.scale = HalfOfE8M0(group.factors[0]) * PowerOfTwo(traits.scale_exponent);
      break;
    case ScaleKind::kHalfGroupE4M3:
      scales.half_factors[0] = HalfOfE4M3(group.factors[0]);
      scales.half_factors[1] = HalfOfE4M3(group.factors[1]);
      break;
    case ScaleKind::kSuperblockFloat:
      scales.scale = group.scale * PowerOfTwo(traits.scale_exponent);
      break;
    case ScaleKind::kHalfGroupE4M3Mul:
      for (int h = 0; h < 2; ++h) {
        scales.half_factors[h] = HalfOfE4M3(group.factors[h]) * group.scale;
      }
      break;
    case ScaleKind::kHalfGroupE4M3Div:
      for (int h = 0; h < 2; ++h) {
        scales.half_factors[h] = HalfOfE4M3(group.factors[h]) / group.scale;
      }
      break;
  }
  return scales;
}

// The number that a stored code stands for, without the scale.
inline int CodeValue(GroupTraits traits, uint8_t code) {
  return traits.codebook == Codebook::kNone ? code - traits.zero_point
                                            : ValuesOf(traits.codebook).values[code];
}

// The same for codes of every kind of number.
inline float CodeNumber(GroupTraits traits, uint8_t code) {
  switch (traits.numbers) {
    case NumberKind::kInteger:
      return static_cast<float>(CodeValue(traits, code));
    case NumberKind::kE4M3:
      return E4M3By256(code);
    case NumberKind::kE5M2:
      return E5M2ToFloat(code);
    case NumberKind::kE2M1: {
      static constexpr NumberTable kTable = NumbersOf(NumberKind::kE2M1);
      return kTable.numbers[code];
    }
    case NumberKind::kNF4: {
      static constexpr NumberTable kTable = NumbersOf(NumberKind::kNF4);
      return kTable.numbers[code];
    }
    case NumberKind::kFP4: {
      static constexpr NumberTable kTable = NumbersOf(NumberKind::kFP4);
      return kTable.numbers[code];
    }
  }
  __builtin_unreachable();
}

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_GROUP_SCALES_H_
