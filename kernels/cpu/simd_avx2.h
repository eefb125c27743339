// The verbs of the AVX2 table: 16 float or int32 lanes in two registers. simd_avx512.h has the same
// verbs over one register; the contract of the verbs is there. Include from kernels_avx2.cc only.
#ifndef TRIREME_KERNELS_CPU_SIMD_AVX2_H_
#define TRIREME_KERNELS_CPU_SIMD_AVX2_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace trireme::kernels::avx2 {
namespace {

constexpr int kLaneCount = 16;

struct Lanes {
  __m256 low, high;
};
struct IntLanes {
  __m256i low, high;
};
struct Mask {  // all bits of a lane, or none
  __m256i low, high;
};

// ---- memory
// Sixteen ones, then sixteen zeros: the 16 words from 16 - count on are the mask of `count` lanes.
alignas(64) constexpr int32_t kTailMasks[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                                -1, -1, -1, -1, -1, 0,  0,  0,  0,  0,  0,
                                                0,  0,  0,  0,  0,  0,  0,  0,  0,  0};

inline Lanes Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline Lanes Set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Lanes Load(const float* source) {
  return {_mm256_loadu_ps(source), _mm256_loadu_ps(source + 8)};
}
inline void Store(float* target, Lanes a) {
  _mm256_storeu_ps(target, a.low);
  _mm256_storeu_ps(target + 8, a.high);
}
inline Mask FirstLanes(int count) {
  const int32_t* mask = kTailMasks + 16 - count;
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(mask)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(mask + 8))};
}
inline Lanes LoadTail(const float* source, int count) {
  const Mask mask = FirstLanes(count);
  return {_mm256_maskload_ps(source, mask.low), _mm256_maskload_ps(source + 8, mask.high)};
}
inline void StoreTail(float* target, Lanes a, int count) {
  const Mask mask = FirstLanes(count);
  _mm256_maskstore_ps(target, mask.low, a.low);
  _mm256_maskstore_ps(target + 8, mask.high, a.high);
}
inline Lanes LoadHalf(const uint16_t* source) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source + 8)))};
}
inline void StoreHalf(uint16_t* target, Lanes a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(target),
                   _mm256_cvtps_ph(a.low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(target + 8),
                   _mm256_cvtps_ph(a.high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
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
  const __m256i low =
      _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
  const __m256i high =
      _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source + 8)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(low, 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(high, 16))};
}
inline void Prefetch(const void* source) {
  _mm_prefetch(static_cast<const char*>(source), _MM_HINT_T0);
}

// ---- float arithmetic
inline Lanes Fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
inline Lanes Add(Lanes a, Lanes b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
inline Lanes Sub(Lanes a, Lanes b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
inline Lanes Mul(Lanes a, Lanes b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
inline Lanes Div(Lanes a, Lanes b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
inline Lanes Sqrt(Lanes a) { return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)}; }
inline Lanes Min(Lanes a, Lanes b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
inline Lanes Max(Lanes a, Lanes b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
inline Lanes Abs(Lanes a) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
}
inline Lanes Negate(Lanes a) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  return {_mm256_xor_ps(sign, a.low), _mm256_xor_ps(sign, a.high)};
}
inline Lanes RoundToEven(Lanes a) {
  return {_mm256_round_ps(a.low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
          _mm256_round_ps(a.high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

// ---- comparison; NaN compares false
inline Mask Less(Lanes a, Lanes b) {
  return {_mm256_castps_si256(_mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ)),
          _mm256_castps_si256(_mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ))};
}
inline Mask LessEqual(Lanes a, Lanes b) {
  return {_mm256_castps_si256(_mm256_cmp_ps(a.low, b.low, _CMP_LE_OQ)),
          _mm256_castps_si256(_mm256_cmp_ps(a.high, b.high, _CMP_LE_OQ))};
}
inline Mask Equal(Lanes a, Lanes b) {
  return {_mm256_castps_si256(_mm256_cmp_ps(a.low, b.low, _CMP_EQ_OQ)),
          _mm256_castps_si256(_mm256_cmp_ps(a.high, b.high, _CMP_EQ_OQ))};
}
inline Mask IsNan(Lanes a) {
  return {_mm256_castps_si256(_mm256_cmp_ps(a.low, a.low, _CMP_UNORD_Q)),
          _mm256_castps_si256(_mm256_cmp_ps(a.high, a.high, _CMP_UNORD_Q))};
}
inline Mask And(Mask a, Mask b) {
  return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
}
inline Mask Or(Mask a, Mask b) {
  return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}
inline Mask Not(Mask a) {
  const __m256i ones = _mm256_set1_epi32(-1);
  return {_mm256_xor_si256(a.low, ones), _mm256_xor_si256(a.high, ones)};
}
inline uint32_t Bits(Mask a) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(a.low))) |
         static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(a.high))) << 8;
}
inline Lanes Select(Mask mask, Lanes yes, Lanes no) {
  return {_mm256_blendv_ps(no.low, yes.low, _mm256_castsi256_ps(mask.low)),
          _mm256_blendv_ps(no.high, yes.high, _mm256_castsi256_ps(mask.high))};
}

// ---- int32 lanes
inline IntLanes SetInt(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline IntLanes LoadInt(const int32_t* source) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(source)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + 8))};
}
inline void StoreInt(int32_t* target, IntLanes a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), a.low);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + 8), a.high);
}
inline IntLanes AddInt(IntLanes a, IntLanes b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
inline IntLanes SubInt(IntLanes a, IntLanes b) {
  return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}
inline IntLanes MulInt(IntLanes a, IntLanes b) {
  return {_mm256_mullo_epi32(a.low, b.low), _mm256_mullo_epi32(a.high, b.high)};
}
inline IntLanes AndInt(IntLanes a, IntLanes b) {
  return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
}
inline IntLanes OrInt(IntLanes a, IntLanes b) {
  return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}
template <int kBits>
inline IntLanes ShiftLeft(IntLanes a) {
  return {_mm256_slli_epi32(a.low, kBits), _mm256_slli_epi32(a.high, kBits)};
}
template <int kBits>
inline IntLanes ShiftRightSigned(IntLanes a) {
  return {_mm256_srai_epi32(a.low, kBits), _mm256_srai_epi32(a.high, kBits)};
}
inline Mask GreaterInt(IntLanes a, IntLanes b) {
  return {_mm256_cmpgt_epi32(a.low, b.low), _mm256_cmpgt_epi32(a.high, b.high)};
}
inline IntLanes SelectInt(Mask mask, IntLanes yes, IntLanes no) {
  return {_mm256_blendv_epi8(no.low, yes.low, mask.low),
          _mm256_blendv_epi8(no.high, yes.high, mask.high)};
}

// ---- conversion
inline IntLanes RoundToInt(Lanes a) {
  return {_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high)};
}
inline Lanes ToFloat(IntLanes a) { return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)}; }
inline IntLanes BitsOf(Lanes a) {
  return {_mm256_castps_si256(a.low), _mm256_castps_si256(a.high)};
}
inline Lanes FromBits(IntLanes a) {
  return {_mm256_castsi256_ps(a.low), _mm256_castsi256_ps(a.high)};
}

// ---- folding 16 lanes
inline float FoldSum(Lanes a) {
  const __m256 eight = _mm256_add_ps(a.low, a.high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float FoldMax(Lanes a) {
  const __m256 eight = _mm256_max_ps(a.low, a.high);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// ---- pairs of neighbouring lanes (rotation), and how much fits into registers
inline Lanes SwapPairs(Lanes a) {
  return {_mm256_permute_ps(a.low, 0xB1), _mm256_permute_ps(a.high, 0xB1)};
}
inline Lanes LoadPairs(const float* source, int count) {
  const __m256 values = _mm256_maskload_ps(source, FirstLanes(count).low);
  return {_mm256_permutevar8x32_ps(values, _mm256_set_epi32(3, 3, 2, 2, 1, 1, 0, 0)),
          _mm256_permutevar8x32_ps(values, _mm256_set_epi32(7, 7, 6, 6, 5, 5, 4, 4))};
}
inline Lanes NegateEvenLanes(Lanes a) {
  const __m256 signs = _mm256_castsi256_ps(_mm256_set1_epi64x(0x80000000LL));
  return {_mm256_xor_ps(a.low, signs), _mm256_xor_ps(a.high, signs)};
}
constexpr int kLanesInRegisters = 8;

// ---- bytes: 16 lanes of four; the integer product of weights (unsigned codes) and activations
constexpr int kTilePanels = 1;
constexpr int kTileTokensMax = 4;
constexpr int kTileTokensHalves = 4;
// vpmaddubsw saturates when unsigned bytes reach 255, so 8-bit codes become signed bytes first.
constexpr bool kEightBitsAreSigned = true;

struct Bytes {
  __m256i low, high;
};
inline Bytes LoadBytes(const std::byte* source) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(source)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + 32))};
}
inline void StoreBytes(std::byte* target, Bytes a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), a.low);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + 32), a.high);
}
inline Bytes SetBytes(int x) {
  const __m256i all = _mm256_set1_epi8(static_cast<char>(x));
  return {all, all};
}
inline Bytes BroadcastFour(const std::byte* source) {
  const __m256i all = _mm256_set1_epi32(*reinterpret_cast<const int32_t*>(source));
  return {all, all};
}
inline Bytes AndBytes(Bytes a, Bytes b) {
  return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
}
inline Bytes OrBytes(Bytes a, Bytes b) {
  return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}
template <int kBits>
inline Bytes ShiftWords(Bytes a) {
  if constexpr (kBits >= 0) {
    return {_mm256_srli_epi16(a.low, kBits), _mm256_srli_epi16(a.high, kBits)};
  } else {
    return {_mm256_slli_epi16(a.low, -kBits), _mm256_slli_epi16(a.high, -kBits)};
  }
}
inline Bytes BroadcastSixteen(const uint8_t* source) {
  const __m256i all =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(source)));
  return {all, all};
}
inline Bytes LookUp(Bytes table, Bytes indices) {
  return {_mm256_shuffle_epi8(table.low, indices.low),
          _mm256_shuffle_epi8(table.high, indices.high)};
}
struct FloatTable {
  __m256 low, high;
};
inline FloatTable LoadTable(const float* source) {
  return {_mm256_load_ps(source), _mm256_load_ps(source + 8)};
}
// Bits 0 to 2 of an index choose in both halves of the table, bit 3 between them.
template <int kShift>
inline __m256 LookUpEight(FloatTable table, __m256i a) {
  const __m256i index = _mm256_srli_epi32(a, kShift);
  const __m256 half = _mm256_castsi256_ps(_mm256_slli_epi32(a, 28 - kShift));
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(table.low, index),
                          _mm256_permutevar8x32_ps(table.high, index), half);
}
template <int kShift>
inline Lanes LookUpFloats(FloatTable table, Bytes a) {
  return {LookUpEight<kShift>(table, a.low), LookUpEight<kShift>(table, a.high)};
}
inline Lanes HalvesToFloats(__m256i halves) {
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
          _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
}
inline Lanes LoadE4M3(const std::byte* source) {
  const __m256i words =
      _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
  return HalvesToFloats(_mm256_and_si256(_mm256_slli_epi16(words, 7),
                                         _mm256_set1_epi16(static_cast<int16_t>(0xBF80))));
}
inline Lanes LoadE5M2(const std::byte* source) {
  const __m256i words =
      _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
  return HalvesToFloats(_mm256_slli_epi16(words, 8));
}
inline __m256i DotHalf(__m256i sum, __m256i unsigned_bytes, __m256i signed_bytes) {
  const __m256i pairs = _mm256_maddubs_epi16(unsigned_bytes, signed_bytes);
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
// Pairs stay below 2^15: unsigned codes are at most 126 (62 + 64, IQ3_XXS) and activations at most
// 127 in magnitude, 2 * 126 * 127 = 32004; signed 8-bit weights enter as magnitude (at most 128)
// and their sign moves to the activation.
template <bool kEightBits>
inline IntLanes DotBytes(IntLanes sum, Bytes weights, Bytes activations) {
  if constexpr (!kEightBits) {
    return {DotHalf(sum.low, weights.low, activations.low),
            DotHalf(sum.high, weights.high, activations.high)};
  }
  const __m256i offset = _mm256_set1_epi8(static_cast<char>(-128));
  const __m256i low = _mm256_xor_si256(weights.low, offset);
  const __m256i high = _mm256_xor_si256(weights.high, offset);
  return {DotHalf(sum.low, _mm256_abs_epi8(low), _mm256_sign_epi8(activations.low, low)),
          DotHalf(sum.high, _mm256_abs_epi8(high), _mm256_sign_epi8(activations.high, high))};
}
inline IntLanes BroadcastInt(const std::byte* source) {
  return SetInt(*reinterpret_cast<const int32_t*>(source));
}
inline Lanes BroadcastFloat(const std::byte* source) {
  return Set(*reinterpret_cast<const float*>(source));
}
inline __m128i LoadEightBytes(const std::byte* source) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(source));
}
inline IntLanes UnsignedBytesToInt(const std::byte* source) {
  return {_mm256_cvtepu8_epi32(LoadEightBytes(source)),
          _mm256_cvtepu8_epi32(LoadEightBytes(source + 8))};
}
inline Lanes SignedBytesToFloat(const std::byte* source) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(LoadEightBytes(source))),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(LoadEightBytes(source + 8)))};
}
template <int kIndex>
inline IntLanes ByteOfLanes(Bytes a) {
  const __m256i mask = _mm256_set1_epi32(255);
  return {_mm256_and_si256(_mm256_srli_epi32(a.low, 8 * kIndex), mask),
          _mm256_and_si256(_mm256_srli_epi32(a.high, 8 * kIndex), mask)};
}
inline void StoreLowBytes(std::byte* target, IntLanes a) {
  const __m256i mask = _mm256_set1_epi32(255);
  const __m256i words =
      _mm256_packus_epi32(_mm256_and_si256(a.low, mask), _mm256_and_si256(a.high, mask));
  const __m256i ordered = _mm256_permute4x64_epi64(words, 0xD8);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(target),
      _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1)));
}
inline int32_t SumOfSixteenBytes(const std::byte* source) {
  const __m128i biased = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)),
                                       _mm_set1_epi8(static_cast<char>(-128)));
  const __m128i sums = _mm_sad_epu8(biased, _mm_setzero_si128());
  return _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums))) - 16 * 128;
}

}  // namespace
}  // namespace trireme::kernels::avx2

#endif  // TRIREME_KERNELS_CPU_SIMD_AVX2_H_
