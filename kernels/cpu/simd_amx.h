// What the AMX table has beyond the verbs of simd_avx512.h: bytes as 16-bit words, bfloat16
// operands, and the tile unit. tests/kernels/simd_emulated_tiles.h has the same verbs without the
// unit, so that every machine can run the code over them. Include from kernels_amx.cc only.
//
// A tile is 16 rows of 64 bytes. One instruction adds to a tile of float32 sums [16 tokens][16
// weight rows] the product of activations [16 tokens][16 pairs] and weights [16 pairs][16 weight
// rows][2], both bfloat16: each sum gets the fused chain over the pairs' first columns plus that
// over their second ones, both from +0. With integers below 2^24 all of that is exact.
//
// The compiler's own tile intrinsics do not say what memory they touch (gcc 12 drops the stores
// that fill it), hence assembly with exact operands.
#ifndef TRIREME_KERNELS_CPU_SIMD_AMX_H_
#define TRIREME_KERNELS_CPU_SIMD_AMX_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd_avx512.h"

namespace trireme::kernels::avx512 {
namespace {

// Lane kLane in all lanes.
template <int kLane>
inline Lanes BroadcastLane(Lanes a) {
  const __m512 four = _mm512_shuffle_f32x4(a.value, a.value, kLane / 4 * 0x55);
  return {_mm512_permute_ps(four, kLane % 4 * 0x55)};
}

// ---- bytes as 32 words of 16 bits
inline Bytes SetWords(int x) { return {_mm512_set1_epi16(static_cast<int16_t>(x))}; }
inline Bytes AddWords(Bytes a, Bytes b) { return {_mm512_add_epi16(a.value, b.value)}; }
inline Bytes SubWords(Bytes a, Bytes b) { return {_mm512_sub_epi16(a.value, b.value)}; }
inline Bytes MulWords(Bytes a, Bytes b) { return {_mm512_mullo_epi16(a.value, b.value)}; }
inline Bytes BytesOfInts(IntLanes a) { return {a.value}; }
// The bytes of even index, and those of odd index, zero-extended.
inline Bytes EvenBytes(Bytes a) { return {_mm512_and_si512(a.value, _mm512_set1_epi16(0xFF))}; }
inline Bytes OddBytes(Bytes a) { return {_mm512_srli_epi16(a.value, 8)}; }
// The entry of a table of 32 words that the low five bits of each word name.
inline Bytes LookUpWords(Bytes table, Bytes indices) {
  return {_mm512_permutexvar_epi16(indices.value, table.value)};
}
// 32 signed bytes as words, of each four columns in the order 0, 2, 1, 3: the order in which the
// even and then the odd bytes of a lane of weights become pairs.
inline Bytes SignedBytesToPairs(const std::byte* source) {
  const __m256i order = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15));
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
  return {_mm512_cvtepi8_epi16(_mm256_shuffle_epi8(bytes, order))};
}

// ---- integers as bfloat16. Half precision has the same fields with a shorter exponent: its bits,
// moved, are the number times 2^-112. Weights stay so and activations are raised by twice that.
constexpr int kBFloat16Exponent = -112;  // of weights; activations have the opposite
// Signed words of at most 8 significant bits.
inline Bytes WeightBFloat16(Bytes words) {
  const __m512i half = _mm512_castph_si512(_mm512_cvtepi16_ph(words.value));
  return {_mm512_and_si512(_mm512_srai_epi16(half, 3),
                           _mm512_set1_epi16(static_cast<int16_t>(0x8FFF)))};
}
inline Bytes ActivationBFloat16(Bytes words) {
  const __m512i low = WeightBFloat16(words).value;
  const __mmask32 is_number = _mm512_test_epi16_mask(low, low);
  return {
      _mm512_mask_add_epi16(low, is_number, low, _mm512_set1_epi16(-2 * kBFloat16Exponent << 7))};
}

// ---- the tile unit: every thread configures it before its first tile and releases it after its
// last.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

inline void ConfigureTiles() {
  const TileConfiguration configuration;
  __asm__ volatile("ldtilecfg %0" : : "m"(configuration));
}
inline void ReleaseTiles() { __asm__ volatile("tilerelease"); }

using TileBytes = std::byte[1024];
template <int kTile>
[[gnu::always_inline]] inline void ClearTile() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
template <int kTile>
[[gnu::always_inline]] inline void LoadTile(const std::byte* source) {
  __asm__ volatile("tileloadd (%1,%2,1), %%tmm%c0"
                   :
                   : "i"(kTile), "r"(source), "r"(int64_t{64}),
                     "m"(*reinterpret_cast<const TileBytes*>(source)));
}
// The same, and asks the caches not to keep the source in favour of others.
template <int kTile>
[[gnu::always_inline]] inline void LoadTileOnce(const std::byte* source) {
  __asm__ volatile("tileloaddt1 (%1,%2,1), %%tmm%c0"
                   :
                   : "i"(kTile), "r"(source), "r"(int64_t{64}),
                     "m"(*reinterpret_cast<const TileBytes*>(source)));
}
template <int kTile>
[[gnu::always_inline]] inline void StoreTile(float* target) {
  __asm__ volatile("tilestored %%tmm%c1, (%2,%3,1)"
                   : "=m"(*reinterpret_cast<TileBytes*>(target))
                   : "i"(kTile), "r"(target), "r"(int64_t{64}));
}
template <int kSums, int kActivations, int kWeights>
[[gnu::always_inline]] inline void MultiplyTiles() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0"
                   :
                   : "i"(kSums), "i"(kActivations), "i"(kWeights));
}

}  // namespace
}  // namespace trireme::kernels::avx512

#endif  // TRIREME_KERNELS_CPU_SIMD_AMX_H_
