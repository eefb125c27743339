// The verbs of the AVX-512 table: 16 float or int32 lanes in one register. simd_avx2.h has the same
// verbs over two registers, simd_portable.h over arrays, so that code over 16 lanes is written
// once, in .inc files. Everything has internal linkage and lies in the table's own namespace:
// objects with different -m flags must not share an inline function. Include from
// kernels_{avx512,avx512bf16,amx}.cc only.
//
// Masks select lanes; "Tail" verbs touch the first `count` lanes only (0 <= count <= 16) and
// neither read nor write memory beyond them; the lanes beyond are +0 after a load.
#ifndef TRIREME_KERNELS_CPU_SIMD_AVX512_H_
#define TRIREME_KERNELS_CPU_SIMD_AVX512_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace trireme::kernels::avx512 {
namespace {

constexpr int kLaneCount = 16;

struct Lanes {
  __m512 value;
};
struct IntLanes {
  __m512i value;
};
struct Mask {
  __mmask16 value;
};

// ---- memory
inline Lanes Zero() { return {_mm512_setzero_ps()}; }
inline Lanes Set(float x) { return {_mm512_set1_ps(x)}; }
inline Lanes Load(const float* source) { return {_mm512_loadu_ps(source)}; }
inline void Store(float* target, Lanes a) { _mm512_storeu_ps(target, a.value); }
inline Mask FirstLanes(int count) { return {static_cast<__mmask16>((1U << count) - 1U)}; }
inline Lanes LoadTail(const float* source, int count) {
  return {_mm512_maskz_loadu_ps(FirstLanes(count).value, source)};
}
inline void StoreTail(float* target, Lanes a, int count) {
  _mm512_mask_storeu_ps(target, FirstLanes(count).value, a.value);
}
// Half precision; storing rounds to nearest even.
inline Lanes LoadHalf(const uint16_t* source) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(source)))};
}
inline void StoreHalf(uint16_t* target, Lanes a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target),
                      _mm512_cvtps_ph(a.value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline Lanes LoadHalfTail(const uint16_t* source, int count) {
  return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(FirstLanes(count).value, source))};
}
inline void StoreHalfTail(uint16_t* target, Lanes a, int count) {
  _mm256_mask_storeu_epi16(target, FirstLanes(count).value,
                           _mm512_cvtps_ph(a.value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline Lanes LoadBFloat16(const uint16_t* source) {
  const __m512i wide =
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(source)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
inline void Prefetch(const void* source) {
  _mm_prefetch(static_cast<const char*>(source), _MM_HINT_T0);
}

// ---- float arithmetic
inline Lanes Fma(Lanes a, Lanes b, Lanes c) {  // a * b + c, rounded once
  return {_mm512_fmadd_ps(a.value, b.value, c.value)};
}
inline Lanes Add(Lanes a, Lanes b) { return {_mm512_add_ps(a.value, b.value)}; }
inline Lanes Sub(Lanes a, Lanes b) { return {_mm512_sub_ps(a.value, b.value)}; }
inline Lanes Mul(Lanes a, Lanes b) { return {_mm512_mul_ps(a.value, b.value)}; }
inline Lanes Div(Lanes a, Lanes b) { return {_mm512_div_ps(a.value, b.value)}; }
inline Lanes Sqrt(Lanes a) { return {_mm512_sqrt_ps(a.value)}; }
// Min: a < b ? a : b. Max: a > b ? a : b. So b wins when either is NaN or both are zeros.
inline Lanes Min(Lanes a, Lanes b) { return {_mm512_min_ps(a.value, b.value)}; }
inline Lanes Max(Lanes a, Lanes b) { return {_mm512_max_ps(a.value, b.value)}; }
inline Lanes Abs(Lanes a) { return {_mm512_abs_ps(a.value)}; }
inline Lanes Negate(Lanes a) { return {_mm512_xor_ps(a.value, _mm512_set1_ps(-0.0F))}; }
inline Lanes RoundToEven(Lanes a) {  // to an integral float
  return {_mm512_roundscale_ps(a.value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

// ---- comparison; NaN compares false
inline Mask Less(Lanes a, Lanes b) { return {_mm512_cmp_ps_mask(a.value, b.value, _CMP_LT_OQ)}; }
inline Mask LessEqual(Lanes a, Lanes b) {
  return {_mm512_cmp_ps_mask(a.value, b.value, _CMP_LE_OQ)};
}
inline Mask Equal(Lanes a, Lanes b) { return {_mm512_cmp_ps_mask(a.value, b.value, _CMP_EQ_OQ)}; }
inline Mask IsNan(Lanes a) { return {_mm512_cmp_ps_mask(a.value, a.value, _CMP_UNORD_Q)}; }
inline Mask And(Mask a, Mask b) { return {static_cast<__mmask16>(a.value & b.value)}; }
inline Mask Or(Mask a, Mask b) { return {static_cast<__mmask16>(a.value | b.value)}; }
inline Mask Not(Mask a) { return {static_cast<__mmask16>(~a.value)}; }
inline uint32_t Bits(Mask a) { return a.value; }  // bit i: lane i
inline Lanes Select(Mask mask, Lanes yes, Lanes no) {
  return {_mm512_mask_blend_ps(mask.value, no.value, yes.value)};
}

// ---- int32 lanes
inline IntLanes SetInt(int32_t x) { return {_mm512_set1_epi32(x)}; }
inline IntLanes LoadInt(const int32_t* source) { return {_mm512_loadu_si512(source)}; }
inline void StoreInt(int32_t* target, IntLanes a) { _mm512_storeu_si512(target, a.value); }
inline IntLanes AddInt(IntLanes a, IntLanes b) { return {_mm512_add_epi32(a.value, b.value)}; }
inline IntLanes SubInt(IntLanes a, IntLanes b) { return {_mm512_sub_epi32(a.value, b.value)}; }
inline IntLanes MulInt(IntLanes a, IntLanes b) { return {_mm512_mullo_epi32(a.value, b.value)}; }
inline IntLanes AndInt(IntLanes a, IntLanes b) { return {_mm512_and_si512(a.value, b.value)}; }
inline IntLanes OrInt(IntLanes a, IntLanes b) { return {_mm512_or_si512(a.value, b.value)}; }
template <int kBits>
inline IntLanes ShiftLeft(IntLanes a) {
  return {_mm512_slli_epi32(a.value, kBits)};
}
template <int kBits>
inline IntLanes ShiftRightSigned(IntLanes a) {
  return {_mm512_srai_epi32(a.value, kBits)};
}
inline Mask GreaterInt(IntLanes a, IntLanes b) {
  return {_mm512_cmpgt_epi32_mask(a.value, b.value)};
}
inline IntLanes SelectInt(Mask mask, IntLanes yes, IntLanes no) {
  return {_mm512_mask_blend_epi32(mask.value, no.value, yes.value)};
}

// ---- conversion
inline IntLanes RoundToInt(Lanes a) { return {_mm512_cvtps_epi32(a.value)}; }  // to nearest even
inline Lanes ToFloat(IntLanes a) { return {_mm512_cvtepi32_ps(a.value)}; }
inline IntLanes BitsOf(Lanes a) { return {_mm512_castps_si512(a.value)}; }
inline Lanes FromBits(IntLanes a) { return {_mm512_castsi512_ps(a.value)}; }

// ---- folding 16 lanes: lane i takes lane i + 8, then + 4, + 2, + 1; the result is lane 0
inline float FoldSum(Lanes a) {
  const __m256 eight =
      _mm256_add_ps(_mm512_castps512_ps256(a.value), _mm512_extractf32x8_ps(a.value, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float FoldMax(Lanes a) {  // no NaN among the lanes
  const __m256 eight =
      _mm256_max_ps(_mm512_castps512_ps256(a.value), _mm512_extractf32x8_ps(a.value, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// ---- pairs of neighbouring lanes (rotation), and how much fits into registers
inline Lanes SwapPairs(Lanes a) { return {_mm512_permute_ps(a.value, 0xB1)}; }  // 1 0 3 2 ...
// The first `count` <= 8 values, each in two neighbouring lanes; memory beyond is not read.
inline Lanes LoadPairs(const float* source, int count) {
  const __m512 values = _mm512_maskz_loadu_ps(FirstLanes(count).value, source);
  const __m512i order = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
  return {_mm512_permutexvar_ps(order, values)};
}
inline Lanes NegateEvenLanes(Lanes a) {
  const __m512i signs = _mm512_set1_epi64(0x80000000LL);
  return {_mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a.value), signs))};
}
constexpr int kLanesInRegisters = 32;  // values of type Lanes that the register file holds

// ---- bytes: 16 lanes of four; the integer product of weights (unsigned codes) and activations
constexpr int kTilePanels = 2;        // panels of 16 rows that one tile of a product holds
constexpr int kTileTokensMax = 6;     // tokens of a tile: 2 x 6 integer and float sums in registers
constexpr int kTileTokensHalves = 4;  // where each half group has its own integer sum
// Whether 8-bit codes enter DotBytes as signed values, so that their zero point needs no
// correction.
constexpr bool kEightBitsAreSigned = false;

struct Bytes {
  __m512i value;
};
inline Bytes LoadBytes(const std::byte* source) { return {_mm512_loadu_si512(source)}; }
inline void StoreBytes(std::byte* target, Bytes a) { _mm512_storeu_si512(target, a.value); }
inline Bytes SetBytes(int x) { return {_mm512_set1_epi8(static_cast<char>(x))}; }
// Four consecutive activation codes in every lane.
inline Bytes BroadcastFour(const std::byte* source) {
  return {_mm512_set1_epi32(*reinterpret_cast<const int32_t*>(source))};
}
inline Bytes AndBytes(Bytes a, Bytes b) { return {_mm512_and_si512(a.value, b.value)}; }
inline Bytes OrBytes(Bytes a, Bytes b) { return {_mm512_or_si512(a.value, b.value)}; }
// Shifts 16-bit words by kBits to the right, or by -kBits to the left.
template <int kBits>
inline Bytes ShiftWords(Bytes a) {
  if constexpr (kBits >= 0) {
    return {_mm512_srli_epi16(a.value, kBits)};
  } else {
    return {_mm512_slli_epi16(a.value, -kBits)};
  }
}
// Sixteen bytes, 16-byte aligned, as a table for LookUp.
inline Bytes BroadcastSixteen(const uint8_t* source) {
  return {_mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(source)))};
}
// The table's entry for each byte, all of them below 16.
inline Bytes LookUp(Bytes table, Bytes indices) {
  return {_mm512_shuffle_epi8(table.value, indices.value)};
}
// Sixteen floats, 64-byte aligned, as a table for LookUpFloats.
struct FloatTable {
  __m512 entries;
};
inline FloatTable LoadTable(const float* source) { return {_mm512_load_ps(source)}; }
// The entry of bits kShift .. kShift + 3 of each lane.
template <int kShift>
inline Lanes LookUpFloats(FloatTable table, Bytes a) {
  // The instruction looks at four bits of each lane.
  const __m512i index = kShift == 0 ? a.value : _mm512_srli_epi32(a.value, kShift);
  return {_mm512_permutexvar_ps(index, table.entries)};
}
// 16 numbers of 8 bits (scalar_types.h): E4M3 / 256, and E5M2.
inline Lanes LoadE4M3(const std::byte* source) {
  const __m256i words =
      _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
  const __m256i halves = _mm256_and_si256(_mm256_slli_epi16(words, 7),
                                          _mm256_set1_epi16(static_cast<int16_t>(0xBF80)));
  return {_mm512_cvtph_ps(halves)};
}
inline Lanes LoadE5M2(const std::byte* source) {
  const __m256i words =
      _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
  return {_mm512_cvtph_ps(_mm256_slli_epi16(words, 8))};
}
// sum + the four products of each lane; weights unsigned, activations signed, exact.
template <bool kEightBits>
inline IntLanes DotBytes(IntLanes sum, Bytes weights, Bytes activations) {
  return {_mm512_dpbusd_epi32(sum.value, weights.value, activations.value)};
}
inline IntLanes BroadcastInt(const std::byte* source) {
  return {_mm512_set1_epi32(*reinterpret_cast<const int32_t*>(source))};
}
inline Lanes BroadcastFloat(const std::byte* source) {
  return {_mm512_set1_ps(*reinterpret_cast<const float*>(source))};
}
// 16 bytes as lanes.
inline IntLanes UnsignedBytesToInt(const std::byte* source) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source));
  return {_mm512_cvtepu8_epi32(bytes)};
}
inline Lanes SignedBytesToFloat(const std::byte* source) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source));
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}
// Byte kIndex of each lane, as an int.
template <int kIndex>
inline IntLanes ByteOfLanes(Bytes a) {
  return {_mm512_and_si512(_mm512_srli_epi32(a.value, 8 * kIndex), _mm512_set1_epi32(255))};
}
// The low byte of each lane.
inline void StoreLowBytes(std::byte* target, IntLanes a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(target), _mm512_cvtepi32_epi8(a.value));
}
// The sum of 16 signed bytes.
inline int32_t SumOfSixteenBytes(const std::byte* source) {
  const __m128i biased = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)),
                                       _mm_set1_epi8(static_cast<char>(-128)));
  const __m128i sums = _mm_sad_epu8(biased, _mm_setzero_si128());
  return _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums))) - 16 * 128;
}

}  // namespace
}  // namespace trireme::kernels::avx512

#endif  // TRIREME_KERNELS_CPU_SIMD_AVX512_H_
