// Half (IEEE binary16) and bfloat16 from and to float, the scales of the FP4 formats and
// FP8, in software and exact: subnormals, infinities and NaN included. NaN stays NaN and becomes
// quiet, as the processors' own conversions do. Rounding is to nearest even. Plain values travel as
// their bits in uint16_t.
#ifndef TRIREME_KERNELS_SCALAR_TYPES_H_
#define TRIREME_KERNELS_SCALAR_TYPES_H_

#include <bit>
#include <cstdint>

namespace trireme::kernels {

inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 0x1FU;
  const uint32_t mantissa = half & 0x3FFU;
  if (exponent == 0x1F) {
    const uint32_t quiet = mantissa != 0 ? 0x00400000U : 0U;
    return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13) | quiet);
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
  }
  // Zero or subnormal: mantissa * 2^-24, exact in float.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000U;
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) {
    return static_cast<uint16_t>(sign | 0x7E00U | ((magnitude >> 13) & 0x3FFU));
  }
  if (magnitude >= 0x477FF000U) {  // 65520 and above round to infinity
    return static_cast<uint16_t>(sign | 0x7C00U);
  }
  if (magnitude < 0x38800000U) {  // below 2^-14: subnormal or zero
    // Adding 0.5 moves the last kept bit, 2^-24, to the last bit of the mantissa; the addition
    // rounds to nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000U));
  }
  const uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
}

inline float BFloat16ToFloat(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

inline uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
    return static_cast<uint16_t>((bits >> 16) | 0x40U);
  }
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

// Half of an E8M0 number, 2^(code - 128): exact, subnormal for codes 0 and 1. The code 255, no
// number in E8M0, is 2^127 here, as GGUF has it.
inline float HalfOfE8M0(uint8_t code) {
  return code < 2 ? std::bit_cast<float>(0x00200000U << code)
                  : std::bit_cast<float>(static_cast<uint32_t>(code - 1) << 23);
}

// Half of an unsigned E4M3 number; code < 128. The code 127, no number in E4M3, is 240 here.
inline float HalfOfE4M3(uint8_t code) {
  return code < 8 ? static_cast<float>(code) * 0x1p-10F
                  : std::bit_cast<float>((static_cast<uint32_t>(code) << 20) + (119U << 23));
}

// Numbers of 8 bits: 1 sign, 4 or 5 of exponent, the rest of mantissa. E4M3 (the "FN" variety) has
// no infinities and one NaN of each sign; E5M2 is the upper byte of a half.
inline float E4M3ToFloat(uint8_t code) {
  const auto magnitude = static_cast<uint8_t>(code & 0x7F);
  const float value =
      magnitude == 0x7F ? std::bit_cast<float>(0x7FC00000U) : 2 * HalfOfE4M3(magnitude);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | static_cast<uint32_t>(code & 0x80)
                                                                   << 24);
}
inline float E5M2ToFloat(uint8_t code) { return HalfToFloat(static_cast<uint16_t>(code << 8)); }

// An E4M3 number / 256: its bits are those of a half, whose exponent has a bias greater by 8. The
// codes 0x7F and 0xFF, no numbers in E4M3, are 480 / 256 and its negative here.
inline float E4M3By256(uint8_t code) {
  return HalfToFloat(static_cast<uint16_t>((code & 0x80) << 8 | (code & 0x7F) << 7));
}

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_SCALAR_TYPES_H_
