// The verbs of the table "neon": 16 float or int32 lanes in four registers of 64-bit ARM, with the
// dot product of ARMv8.2. The contract of the verbs is in simd_avx512.h; where an instruction of
// ARM gives other results (minimum and maximum of NaN and zeros, integers that no int32 holds), a
// comparison and a selection give those of the contract. Include from kernels_neon.cc only.
#ifndef TRIREME_KERNELS_CPU_SIMD_NEON_H_
#define TRIREME_KERNELS_CPU_SIMD_NEON_H_

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace trireme::kernels::neon {
namespace {

constexpr int kLaneCount = 16;

struct Lanes {
  float32x4_t x0, x1, x2, x3;  // lanes 0 to 3, 4 to 7, ...
};
struct IntLanes {
  int32x4_t x0, x1, x2, x3;
};
struct Mask {
  uint32x4_t x0, x1, x2, x3;  // all bits of a lane, or none
};

// The four registers of body(...) of those of the arguments.
template <typename Result, typename Body, typename... Vectors>
[[gnu::always_inline]] inline Result ForRegisters(const Body& body, const Vectors&... vectors) {
  return {body(vectors.x0...), body(vectors.x1...), body(vectors.x2...), body(vectors.x3...)};
}
// The same register four times.
template <typename Result, typename Register>
[[gnu::always_inline]] inline Result FourTimes(Register x) {
  return {x, x, x, x};
}

// ---- memory
inline Lanes Set(float x) { return FourTimes<Lanes>(vdupq_n_f32(x)); }
inline Lanes Zero() { return Set(0.0F); }
inline Lanes Load(const float* source) {
  return {vld1q_f32(source), vld1q_f32(source + 4), vld1q_f32(source + 8), vld1q_f32(source + 12)};
}
inline void Store(float* target, Lanes a) {
  vst1q_f32(target, a.x0);
  vst1q_f32(target + 4, a.x1);
  vst1q_f32(target + 8, a.x2);
  vst1q_f32(target + 12, a.x3);
}
inline Mask FirstLanes(int count) {
  const int32x4_t numbers = {0, 1, 2, 3};
  return {vcltq_s32(numbers, vdupq_n_s32(count)), vcltq_s32(numbers, vdupq_n_s32(count - 4)),
          vcltq_s32(numbers, vdupq_n_s32(count - 8)), vcltq_s32(numbers, vdupq_n_s32(count - 12))};
}
inline Lanes LoadTail(const float* source, int count) {
  float whole[kLaneCount] = {};
  for (int i = 0; i < count; ++i) {
    whole[i] = source[i];
  }
  return Load(whole);
}
inline void StoreTail(float* target, Lanes a, int count) {
  float whole[kLaneCount];
  Store(whole, a);
  for (int i = 0; i < count; ++i) {
    target[i] = whole[i];
  }
}
inline Lanes HalvesToFloats(uint16x8_t low, uint16x8_t high) {
  const float16x8_t low_halves = vreinterpretq_f16_u16(low);
  const float16x8_t high_halves = vreinterpretq_f16_u16(high);
  return {vcvt_f32_f16(vget_low_f16(low_halves)), vcvt_high_f32_f16(low_halves),
          vcvt_f32_f16(vget_low_f16(high_halves)), vcvt_high_f32_f16(high_halves)};
}
inline Lanes LoadHalf(const uint16_t* source) {
  return HalvesToFloats(vld1q_u16(source), vld1q_u16(source + 8));
}
inline void StoreHalf(uint16_t* target, Lanes a) {
  const float16x8_t low = vcvt_high_f16_f32(vcvt_f16_f32(a.x0), a.x1);
  const float16x8_t high = vcvt_high_f16_f32(vcvt_f16_f32(a.x2), a.x3);
  vst1q_u16(target, vreinterpretq_u16_f16(low));
  vst1q_u16(target + 8, vreinterpretq_u16_f16(high));
}
inline Lanes LoadHalfTail(const uint16_t* source, int count) {
  uint16_t whole[kLaneCount] = {};
  for (int i = 0; i < count; ++i) {
    whole[i] = source[i];
  }
  return LoadHalf(whole);
}
inline void StoreHalfTail(uint16_t* target, Lanes a, int count) {
  uint16_t whole[kLaneCount];
  StoreHalf(whole, a);
  for (int i = 0; i < count; ++i) {
    target[i] = whole[i];
  }
}
inline Lanes LoadBFloat16(const uint16_t* source) {
  const uint16x8_t zero = vdupq_n_u16(0);
  const uint16x8_t low = vld1q_u16(source);
  const uint16x8_t high = vld1q_u16(source + 8);
  return {
      vreinterpretq_f32_u16(vzip1q_u16(zero, low)), vreinterpretq_f32_u16(vzip2q_u16(zero, low)),
      vreinterpretq_f32_u16(vzip1q_u16(zero, high)), vreinterpretq_f32_u16(vzip2q_u16(zero, high))};
}
inline void Prefetch(const void* source) { __builtin_prefetch(source); }

// ---- float arithmetic
inline Lanes Fma(Lanes a, Lanes b, Lanes c) {
  return ForRegisters<Lanes>([](auto x, auto y, auto z) { return vfmaq_f32(z, x, y); }, a, b, c);
}
inline Lanes Add(Lanes a, Lanes b) {
  return ForRegisters<Lanes>([](auto x, auto y) { return vaddq_f32(x, y); }, a, b);
}
inline Lanes Sub(Lanes a, Lanes b) {
  return ForRegisters<Lanes>([](auto x, auto y) { return vsubq_f32(x, y); }, a, b);
}
inline Lanes Mul(Lanes a, Lanes b) {
  return ForRegisters<Lanes>([](auto x, auto y) { return vmulq_f32(x, y); }, a, b);
}
inline Lanes Div(Lanes a, Lanes b) {
  return ForRegisters<Lanes>([](auto x, auto y) { return vdivq_f32(x, y); }, a, b);
}
inline Lanes Sqrt(Lanes a) {
  return ForRegisters<Lanes>([](auto x) { return vsqrtq_f32(x); }, a);
}
// FMIN and FMAX give NaN where one operand is, and order zeros by their signs.
inline float32x4_t LargerOfRegister(float32x4_t x, float32x4_t y) {
  return vbslq_f32(vcgtq_f32(x, y), x, y);
}
inline Lanes Min(Lanes a, Lanes b) {
  return ForRegisters<Lanes>([](auto x, auto y) { return vbslq_f32(vcltq_f32(x, y), x, y); }, a, b);
}
inline Lanes Max(Lanes a, Lanes b) {
  return ForRegisters<Lanes>([](auto x, auto y) { return LargerOfRegister(x, y); }, a, b);
}
inline Lanes Abs(Lanes a) {
  return ForRegisters<Lanes>([](auto x) { return vabsq_f32(x); }, a);
}
inline Lanes Negate(Lanes a) {
  return ForRegisters<Lanes>([](auto x) { return vnegq_f32(x); }, a);
}
inline Lanes RoundToEven(Lanes a) {
  return ForRegisters<Lanes>([](auto x) { return vrndnq_f32(x); }, a);
}

// ---- comparison; NaN compares false
inline Mask Less(Lanes a, Lanes b) {
  return ForRegisters<Mask>([](auto x, auto y) { return vcltq_f32(x, y); }, a, b);
}
inline Mask LessEqual(Lanes a, Lanes b) {
  return ForRegisters<Mask>([](auto x, auto y) { return vcleq_f32(x, y); }, a, b);
}
inline Mask Equal(Lanes a, Lanes b) {
  return ForRegisters<Mask>([](auto x, auto y) { return vceqq_f32(x, y); }, a, b);
}
inline Mask Not(Mask a) {
  return ForRegisters<Mask>([](auto x) { return vmvnq_u32(x); }, a);
}
inline Mask IsNan(Lanes a) { return Not(Equal(a, a)); }
inline Mask And(Mask a, Mask b) {
  return ForRegisters<Mask>([](auto x, auto y) { return vandq_u32(x, y); }, a, b);
}
inline Mask Or(Mask a, Mask b) {
  return ForRegisters<Mask>([](auto x, auto y) { return vorrq_u32(x, y); }, a, b);
}
inline uint32_t Bits(Mask a) {
  const uint32x4_t weights = {1, 2, 4, 8};
  return vaddvq_u32(vandq_u32(a.x0, weights)) | vaddvq_u32(vandq_u32(a.x1, weights)) << 4 |
         vaddvq_u32(vandq_u32(a.x2, weights)) << 8 | vaddvq_u32(vandq_u32(a.x3, weights)) << 12;
}
inline Lanes Select(Mask mask, Lanes yes, Lanes no) {
  return ForRegisters<Lanes>([](auto m, auto x, auto y) { return vbslq_f32(m, x, y); }, mask, yes,
                             no);
}

// ---- int32 lanes
inline IntLanes SetInt(int32_t x) { return FourTimes<IntLanes>(vdupq_n_s32(x)); }
inline IntLanes LoadInt(const int32_t* source) {
  return {vld1q_s32(source), vld1q_s32(source + 4), vld1q_s32(source + 8), vld1q_s32(source + 12)};
}
inline void StoreInt(int32_t* target, IntLanes a) {
  vst1q_s32(target, a.x0);
  vst1q_s32(target + 4, a.x1);
  vst1q_s32(target + 8, a.x2);
  vst1q_s32(target + 12, a.x3);
}
inline IntLanes AddInt(IntLanes a, IntLanes b) {
  return ForRegisters<IntLanes>([](auto x, auto y) { return vaddq_s32(x, y); }, a, b);
}
inline IntLanes SubInt(IntLanes a, IntLanes b) {
  return ForRegisters<IntLanes>([](auto x, auto y) { return vsubq_s32(x, y); }, a, b);
}
inline IntLanes MulInt(IntLanes a, IntLanes b) {
  return ForRegisters<IntLanes>([](auto x, auto y) { return vmulq_s32(x, y); }, a, b);
}
inline IntLanes AndInt(IntLanes a, IntLanes b) {
  return ForRegisters<IntLanes>([](auto x, auto y) { return vandq_s32(x, y); }, a, b);
}
inline IntLanes OrInt(IntLanes a, IntLanes b) {
  return ForRegisters<IntLanes>([](auto x, auto y) { return vorrq_s32(x, y); }, a, b);
}
template <int kBits>
inline IntLanes ShiftLeft(IntLanes a) {
  return ForRegisters<IntLanes>([](auto x) { return vshlq_n_s32(x, kBits); }, a);
}
template <int kBits>
inline IntLanes ShiftRightSigned(IntLanes a) {
  return ForRegisters<IntLanes>([](auto x) { return vshrq_n_s32(x, kBits); }, a);
}
inline Mask GreaterInt(IntLanes a, IntLanes b) {
  return ForRegisters<Mask>([](auto x, auto y) { return vcgtq_s32(x, y); }, a, b);
}
inline IntLanes SelectInt(Mask mask, IntLanes yes, IntLanes no) {
  return ForRegisters<IntLanes>([](auto m, auto x, auto y) { return vbslq_s32(m, x, y); }, mask,
                                yes, no);
}

// ---- conversion
// The instruction gives 0 for NaN and the largest integer for what is above; here both become the
// smallest, as what is below does.
inline IntLanes RoundToInt(Lanes a) {
  return ForRegisters<IntLanes>(
      [](auto x) {
        const uint32x4_t is_in_range = vcltq_f32(x, vdupq_n_f32(0x1p31F));
        return vbslq_s32(is_in_range, vcvtnq_s32_f32(x), vdupq_n_s32(INT32_MIN));
      },
      a);
}
inline Lanes ToFloat(IntLanes a) {
  return ForRegisters<Lanes>([](auto x) { return vcvtq_f32_s32(x); }, a);
}
inline IntLanes BitsOf(Lanes a) {
  return ForRegisters<IntLanes>([](auto x) { return vreinterpretq_s32_f32(x); }, a);
}
inline Lanes FromBits(IntLanes a) {
  return ForRegisters<Lanes>([](auto x) { return vreinterpretq_f32_s32(x); }, a);
}

// ---- folding 16 lanes
inline float FoldSum(Lanes a) {
  const float32x4_t four = vaddq_f32(vaddq_f32(a.x0, a.x2), vaddq_f32(a.x1, a.x3));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline float FoldMax(Lanes a) {
  const float32x4_t four =
      LargerOfRegister(LargerOfRegister(a.x0, a.x2), LargerOfRegister(a.x1, a.x3));
  const float32x4_t two = LargerOfRegister(four, vextq_f32(four, four, 2));
  const float first = vgetq_lane_f32(two, 0);
  const float second = vgetq_lane_f32(two, 1);
  return first > second ? first : second;
}

// ---- pairs of neighbouring lanes (rotation), and how much fits into registers
inline Lanes SwapPairs(Lanes a) {
  return ForRegisters<Lanes>([](auto x) { return vrev64q_f32(x); }, a);
}
inline Lanes LoadPairs(const float* source, int count) {
  float whole[kLaneCount / 2] = {};
  for (int i = 0; i < count; ++i) {
    whole[i] = source[i];
  }
  const float32x4_t low = vld1q_f32(whole);
  const float32x4_t high = vld1q_f32(whole + 4);
  return {vzip1q_f32(low, low), vzip2q_f32(low, low), vzip1q_f32(high, high),
          vzip2q_f32(high, high)};
}
inline Lanes NegateEvenLanes(Lanes a) {
  const uint32x4_t signs = {0x80000000U, 0, 0x80000000U, 0};
  return ForRegisters<Lanes>(
      [signs](auto x) { return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(x), signs)); },
      a);
}
constexpr int kLanesInRegisters = 8;

// ---- bytes: 16 lanes of four; the integer product of weights (unsigned codes) and activations
constexpr int kTilePanels = 1;
constexpr int kTileTokensMax = 4;
constexpr int kTileTokensHalves = 4;
// The instruction multiplies signed bytes: other codes are at most 126 (62 + 64, IQ3_XXS).
constexpr bool kEightBitsAreSigned = true;

struct Bytes {
  uint8x16_t x0, x1, x2, x3;
};
inline Bytes LoadBytes(const std::byte* source) {
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(source);
  return {vld1q_u8(bytes), vld1q_u8(bytes + 16), vld1q_u8(bytes + 32), vld1q_u8(bytes + 48)};
}
inline void StoreBytes(std::byte* target, Bytes a) {
  uint8_t* bytes = reinterpret_cast<uint8_t*>(target);
  vst1q_u8(bytes, a.x0);
  vst1q_u8(bytes + 16, a.x1);
  vst1q_u8(bytes + 32, a.x2);
  vst1q_u8(bytes + 48, a.x3);
}
inline Bytes SetBytes(int x) { return FourTimes<Bytes>(vdupq_n_u8(static_cast<uint8_t>(x))); }
inline IntLanes BroadcastInt(const std::byte* source) {
  int32_t x;
  std::memcpy(&x, source, sizeof(x));
  return SetInt(x);
}
inline Lanes BroadcastFloat(const std::byte* source) {
  float x;
  std::memcpy(&x, source, sizeof(x));
  return Set(x);
}
inline Bytes BroadcastFour(const std::byte* source) {
  return FourTimes<Bytes>(vreinterpretq_u8_s32(BroadcastInt(source).x0));
}
inline Bytes AndBytes(Bytes a, Bytes b) {
  return ForRegisters<Bytes>([](auto x, auto y) { return vandq_u8(x, y); }, a, b);
}
inline Bytes OrBytes(Bytes a, Bytes b) {
  return ForRegisters<Bytes>([](auto x, auto y) { return vorrq_u8(x, y); }, a, b);
}
template <int kBits>
inline Bytes ShiftWords(Bytes a) {
  return ForRegisters<Bytes>(
      [](auto x) {
        const uint16x8_t words = vreinterpretq_u16_u8(x);
        if constexpr (kBits > 0) {
          return vreinterpretq_u8_u16(vshrq_n_u16(words, kBits));
        } else {
          return vreinterpretq_u8_u16(vshlq_n_u16(words, -kBits));
        }
      },
      a);
}
inline Bytes BroadcastSixteen(const uint8_t* source) { return FourTimes<Bytes>(vld1q_u8(source)); }
inline Bytes LookUp(Bytes table, Bytes indices) {
  return ForRegisters<Bytes>([](auto x, auto y) { return vqtbl1q_u8(x, y); }, table, indices);
}
struct FloatTable {
  uint8x16x4_t entries;
};
inline FloatTable LoadTable(const float* source) {
  const Bytes bytes = LoadBytes(reinterpret_cast<const std::byte*>(source));
  return {{{bytes.x0, bytes.x1, bytes.x2, bytes.x3}}};
}
// The four bytes of an entry are looked up one by one.
template <int kShift>
inline Lanes LookUpFloats(FloatTable table, Bytes a) {
  return ForRegisters<Lanes>(
      [&table](auto x) {
        uint32x4_t index = vreinterpretq_u32_u8(x);
        if constexpr (kShift > 0) {
          index = vshrq_n_u32(index, kShift);
        }
        index = vandq_u32(index, vdupq_n_u32(15));
        index = vmlaq_u32(vdupq_n_u32(0x03020100U), index, vdupq_n_u32(0x04040404U));
        return vreinterpretq_f32_u8(vqtbl4q_u8(table.entries, vreinterpretq_u8_u32(index)));
      },
      a);
}
inline Lanes LoadE4M3(const std::byte* source) {
  const int8x16_t codes = vld1q_s8(reinterpret_cast<const int8_t*>(source));
  const uint16x8_t kept = vdupq_n_u16(0xBF80);
  const uint16x8_t low = vreinterpretq_u16_s16(vshll_n_s8(vget_low_s8(codes), 7));
  const uint16x8_t high = vreinterpretq_u16_s16(vshll_n_s8(vget_high_s8(codes), 7));
  return HalvesToFloats(vandq_u16(low, kept), vandq_u16(high, kept));
}
inline Lanes LoadE5M2(const std::byte* source) {
  const uint8x16_t codes = vld1q_u8(reinterpret_cast<const uint8_t*>(source));
  const uint8x16_t zero = vdupq_n_u8(0);
  return HalvesToFloats(vreinterpretq_u16_u8(vzip1q_u8(zero, codes)),
                        vreinterpretq_u16_u8(vzip2q_u8(zero, codes)));
}
template <bool kEightBits>
inline IntLanes DotBytes(IntLanes sum, Bytes weights, Bytes activations) {
  return ForRegisters<IntLanes>(
      [](auto total, auto w, auto x) {
        const uint8x16_t codes = kEightBits ? veorq_u8(w, vdupq_n_u8(0x80)) : w;
        return vdotq_s32(total, vreinterpretq_s8_u8(codes), vreinterpretq_s8_u8(x));
      },
      sum, weights, activations);
}
inline IntLanes UnsignedBytesToInt(const std::byte* source) {
  const uint8x16_t bytes = vld1q_u8(reinterpret_cast<const uint8_t*>(source));
  const uint16x8_t low = vmovl_u8(vget_low_u8(bytes));
  const uint16x8_t high = vmovl_high_u8(bytes);
  return {vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))),
          vreinterpretq_s32_u32(vmovl_high_u16(low)),
          vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))),
          vreinterpretq_s32_u32(vmovl_high_u16(high))};
}
inline Lanes SignedBytesToFloat(const std::byte* source) {
  const int8x16_t bytes = vld1q_s8(reinterpret_cast<const int8_t*>(source));
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes));
  const int16x8_t high = vmovl_high_s8(bytes);
  return ToFloat({vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)),
                  vmovl_high_s16(high)});
}
template <int kIndex>
inline IntLanes ByteOfLanes(Bytes a) {
  return ForRegisters<IntLanes>(
      [](auto x) {
        uint32x4_t lanes = vreinterpretq_u32_u8(x);
        if constexpr (kIndex > 0) {
          lanes = vshrq_n_u32(lanes, 8 * kIndex);
        }
        return vreinterpretq_s32_u32(vandq_u32(lanes, vdupq_n_u32(255)));
      },
      a);
}
inline void StoreLowBytes(std::byte* target, IntLanes a) {
  const int16x8_t low = vmovn_high_s32(vmovn_s32(a.x0), a.x1);
  const int16x8_t high = vmovn_high_s32(vmovn_s32(a.x2), a.x3);
  vst1q_s8(reinterpret_cast<int8_t*>(target), vmovn_high_s16(vmovn_s16(low), high));
}
inline int32_t SumOfSixteenBytes(const std::byte* source) {
  return vaddlvq_s8(vld1q_s8(reinterpret_cast<const int8_t*>(source)));
}

}  // namespace
}  // namespace trireme::kernels::neon

#endif  // TRIREME_KERNELS_CPU_SIMD_NEON_H_
