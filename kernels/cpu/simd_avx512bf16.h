// Pairs of bfloat16 numbers by vdpbf16ps: what pair_fma.inc does with float32, by the instruction.
// It adds the product of the odd elements, then that of the even ones, each by a fused multiply-add
// that takes denormal numbers for zeros; the bounds of kernel_table.h leave it none to take.
// Include from kernels_avx512bf16.cc only.
#ifndef TRIREME_KERNELS_CPU_SIMD_AVX512BF16_H_
#define TRIREME_KERNELS_CPU_SIMD_AVX512BF16_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/simd_avx512.h"
#include "kernels/kernel_table.h"

namespace trireme::kernels::avx512bf16 {
namespace {

using namespace avx512;

// Tokens of a tile, in place of those of simd_avx512.h: 2 x 12 sums in registers.
constexpr int kTileTokensMax = 12;
constexpr int kTileTokensHalves = 12;

struct PairWeights {
  __m512i value;
};
struct PairActivations {
  __m512i value;
};

// The bits that numbers of kBFloat16WeightMin and above have one of, and those below have not.
constexpr int16_t kWeightBits = 0x6000;
static_assert(kBFloat16WeightMin == 0x1p-63F);

[[gnu::always_inline]] inline PairWeights LoadPair(const std::byte* source) {
  const __m512i pair = _mm512_loadu_si512(source);
  return {
      _mm512_maskz_mov_epi16(_mm512_test_epi16_mask(pair, _mm512_set1_epi16(kWeightBits)), pair)};
}

constexpr int64_t kExpandedPairBytes = 64;
inline void StorePair(std::byte* target, const PairWeights& pair) {
  _mm512_storeu_si512(target, pair.value);
}
[[gnu::always_inline]] inline PairWeights LoadExpandedPair(const std::byte* source) {
  return {_mm512_loadu_si512(source)};
}

// A row of activations: the rounded values.
constexpr int64_t kRoundedValueBytes = 2;

[[gnu::always_inline]] inline PairActivations BroadcastPair(const std::byte* source) {
  int32_t pair;
  std::memcpy(&pair, source, sizeof(pair));
  return {_mm512_set1_epi32(pair)};
}

[[gnu::always_inline]] inline Lanes DotPair(Lanes sum, const PairWeights& weights,
                                            const PairActivations& activations) {
  return {_mm512_dpbf16_ps(sum.value, reinterpret_cast<__m512bh>(weights.value),
                           reinterpret_cast<__m512bh>(activations.value))};
}

// 16 values of a row. The conversion rounds to nearest even, and denormal numbers to zeros.
inline void StoreRounded(std::byte* target, Lanes x) {
  const auto rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x.value));
  // Bits of magnitudes rise with them, NaN the greatest.
  const __m256i magnitude = _mm256_and_si256(rounded, _mm256_set1_epi16(0x7FFF));
  constexpr int16_t kLeast = (127 - 49) << 7;
  static_assert(kBFloat16ActivationMin == 0x1p-49F);
  const __mmask16 kept = _mm256_cmpge_epi16_mask(magnitude, _mm256_set1_epi16(kLeast));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), _mm256_maskz_mov_epi16(kept, rounded));
}

}  // namespace
}  // namespace trireme::kernels::avx512bf16

#endif  // TRIREME_KERNELS_CPU_SIMD_AVX512BF16_H_
