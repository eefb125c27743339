// What integer arithmetic needs to know about 32 consecutive weights of a row: their codes and the
// fields, as stored, from which scale and minimum follow. Every quantised format gives its weights
// in this form; packing and the reference product are written over it once.
//
// weight = (code - zero point) * scale + minimum, where code is the stored code, or what the
// format's codebook has for it; group_scales.h says how scale and minimum follow from the fields.
#ifndef TRIREME_KERNELS_FORMATS_WEIGHT_GROUP_H_
#define TRIREME_KERNELS_FORMATS_WEIGHT_GROUP_H_

#include <cstdint>
#include <cstring>

#include "kernels/formats/codebook.h"

namespace trireme::kernels {

struct WeightGroup {
  uint8_t codes[32];  // as stored, below 2^code_bits
  uint16_t scale_bits = 0;
  uint16_t minimum_bits = 0;
  uint8_t factors[2] = {0, 0};  // as the ScaleKind says
};

// Four codes, or four bytes of storage, at a time: packing reads whole models this way.
inline uint32_t LoadFour(const void* source) {
  uint32_t word;
  std::memcpy(&word, source, sizeof(word));
  return word;
}
inline void StoreFour(uint8_t* target, uint32_t word) { std::memcpy(target, &word, sizeof(word)); }

// Bits 0..3 of `bits`, one to a byte.
inline uint32_t SpreadFourBits(int bits) {
  return (static_cast<uint32_t>(bits & 15) * 0x00204081U) & 0x01010101U;
}

// Where a group's scale comes from. "Half" is a half precision number; a superblock's is shared by
// its groups. Factors are those of WeightGroup.
enum class ScaleKind : uint8_t {
  kGroupHalf,       // half
  kSuperblockHalf,  // half of the superblock
  // half of the superblock times factors[0], a signed byte; with a minimum it is minus the
  // superblock's second half times factors[1], a signed byte
  kFactor,
  // half of the superblock times a signed byte for each half group of 16; with a minimum the low
  // four bits of each byte are that factor and the high four the factor of the minimum
  kHalfGroupFactors,
  kExponent,       // 2^(factors[0] - 128)
  kHalfGroupE4M3,  // half of an unsigned E4M3 number for each half group
};

// The constants of a format's groups, chosen where the format is defined. Formats with equal
// traits are the same packed weights, and kernels are compiled for traits, not for formats.
struct GroupTraits {
  int zero_point = 0;
  int code_bits = 0;  // 2, 3, 4, 5, 6 or 8
  ScaleKind scales = ScaleKind::kGroupHalf;
  bool has_minimum = false;
  Codebook codebook = Codebook::kNone;
  int scale_exponent = 0;  // halves of superblocks are multiplied by 2^scale_exponent
};

constexpr bool HasSuperblocks(GroupTraits traits) {
  return traits.scales == ScaleKind::kSuperblockHalf || traits.scales == ScaleKind::kFactor ||
         traits.scales == ScaleKind::kHalfGroupFactors;
}

// Whether each half group of 16 has a scale of its own.
constexpr bool HasHalfGroups(GroupTraits traits) {
  return traits.scales == ScaleKind::kHalfGroupFactors ||
         traits.scales == ScaleKind::kHalfGroupE4M3;
}

// Bytes of WeightGroup::factors in use.
constexpr int FactorBytes(GroupTraits traits) {
  switch (traits.scales) {
    case ScaleKind::kGroupHalf:
    case ScaleKind::kSuperblockHalf:
      return 0;
    case ScaleKind::kExponent:
      return 1;
    case ScaleKind::kFactor:
      return traits.has_minimum ? 2 : 1;
    case ScaleKind::kHalfGroupFactors:
    case ScaleKind::kHalfGroupE4M3:
      return 2;
  }
  __builtin_unreachable();
}

constexpr float PowerOfTwo(int exponent) {
  float power = 1;
  for (; exponent < 0; ++exponent) {
    power *= 0.5F;
  }
  for (; exponent > 0; --exponent) {
    power *= 2;
  }
  return power;
}

// A codebook's values as the unsigned codes that products multiply.
struct CodeTable {
  uint8_t codes[kCodebookEntries];
};
constexpr CodeTable CodeTableOf(GroupTraits traits) {
  CodeTable table = {};
  for (int i = 0; i < kCodebookEntries; ++i) {
    table.codes[i] = static_cast<uint8_t>(ValuesOf(traits.codebook).values[i] + traits.zero_point);
  }
  return table;
}

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_WEIGHT_GROUP_H_
