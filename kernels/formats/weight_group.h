// What integer arithmetic needs to know about 32 consecutive weights of a row: their codes and the
// fields, as stored, from which scale and minimum follow. Every quantised format gives its weights
// in this form; packing and the reference product are written over it once.
//
// weight = (code - zero point) * scale + minimum, where code is the stored code, or what the
// format's codebook has for it; group_scales.h says how scale and minimum follow from the fields.
//
// Formats of floating point numbers that no scale makes integers give theirs in the same form:
// weight = number of the code * scale, multiplied with float32 activations only.
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
  float scale = 0;              // of kinds that have a float32
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
  kExponent,          // 2^(factors[0] - 128)
  kHalfGroupE4M3,     // half of an unsigned E4M3 number for each half group
  kSuperblockFloat,   // float32 of the superblock
  kHalfGroupE4M3Mul,  // as kHalfGroupE4M3, times the superblock's float32 (rounded)
  kHalfGroupE4M3Div,  // the same divided by it
};

// What a code stands for.
enum class NumberKind : uint8_t {
  kInteger,  // itself, or its entry of the codebook, minus the zero point
  // 8 bits:
  kE4M3,  // the number / 256, since a half holds that (E4M3By256)
  kE5M2,
  // 4 bits, an index into NumbersOf:
  kE2M1,  // twice the number
  kNF4,
  kFP4,
};

// The constants of a format's groups, chosen where the format is defined. Formats with equal
// traits are the same packed weights, and kernels are compiled for traits, not for formats.
struct GroupTraits {
  int zero_point = 0;
  int code_bits = 0;  // 2, 3, 4, 5, 6 or 8
  ScaleKind scales = ScaleKind::kGroupHalf;
  bool has_minimum = false;
  Codebook codebook = Codebook::kNone;
  int scale_exponent = 0;  // scales other than those of half groups are multiplied by 2 to this
  NumberKind numbers = NumberKind::kInteger;
  int superblock_groups = 8;  // 2, 4 or 8
};

constexpr bool HasIntegers(GroupTraits traits) { return traits.numbers == NumberKind::kInteger; }

// Whether the superblock's scale is a float32.
constexpr bool HasFloatScale(GroupTraits traits) {
  return traits.scales == ScaleKind::kSuperblockFloat ||
         traits.scales == ScaleKind::kHalfGroupE4M3Mul ||
         traits.scales == ScaleKind::kHalfGroupE4M3Div;
}

constexpr bool HasSuperblocks(GroupTraits traits) {
  return traits.scales == ScaleKind::kSuperblockHalf || traits.scales == ScaleKind::kFactor ||
         traits.scales == ScaleKind::kHalfGroupFactors || HasFloatScale(traits);
}

// Whether each half group of 16 has a scale of its own.
constexpr bool HasHalfGroups(GroupTraits traits) {
  return traits.scales == ScaleKind::kHalfGroupFactors ||
         traits.scales == ScaleKind::kHalfGroupE4M3 ||
         traits.scales == ScaleKind::kHalfGroupE4M3Mul ||
         traits.scales == ScaleKind::kHalfGroupE4M3Div;
}

// Bytes of WeightGroup::factors in use.
constexpr int FactorBytes(GroupTraits traits) {
  switch (traits.scales) {
    case ScaleKind::kGroupHalf:
    case ScaleKind::kSuperblockHalf:
    case ScaleKind::kSuperblockFloat:
      return 0;
    case ScaleKind::kExponent:
      return 1;
    case ScaleKind::kFactor:
      return traits.has_minimum ? 2 : 1;
    case ScaleKind::kHalfGroupFactors:
    case ScaleKind::kHalfGroupE4M3:
    case ScaleKind::kHalfGroupE4M3Mul:
    case ScaleKind::kHalfGroupE4M3Div:
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

// What the 16 codes of four bits stand for.
struct NumberTable {
  float numbers[kCodebookEntries];
};
constexpr NumberTable NumbersOf(NumberKind kind) {
  NumberTable table = {};
  switch (kind) {
    case NumberKind::kInteger:
    case NumberKind::kE4M3:
    case NumberKind::kE5M2:
      return table;  // have none
    case NumberKind::kE2M1:
      for (int i = 0; i < kCodebookEntries; ++i) {
        table.numbers[i] = static_cast<float>(ValuesOf(Codebook::kE2M1).values[i]);
      }
      return table;
    // Quantiles of a normal distribution (QLoRA, arXiv 2305.14314), as bitsandbytes rounds them.
    case NumberKind::kNF4:
      return {{-1.0F, -0.6961928009986877F, -0.5250730514526367F, -0.39491748809814453F,
               -0.28444138169288635F, -0.18477343022823334F, -0.09105003625154495F, 0.0F,
               0.07958029955625534F, 0.16093020141124725F, 0.24611230194568634F,
               0.33791524171829224F, 0.44070982933044434F, 0.5626170039176941F, 0.7229568362236023F,
               1.0F}};
    // Twelfths, rounded; the sign is the highest bit of a code.
    case NumberKind::kFP4:
      for (int i = 0; i < kCodebookEntries; ++i) {
        constexpr float kTwelfths[8] = {0, 0.0625F, 8, 12, 4, 6, 2, 3};
        table.numbers[i] = (i < 8 ? 1.0F : -1.0F) * (kTwelfths[i % 8] / 12);
      }
      return table;
  }
  __builtin_unreachable();
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
