// The verbs of simd_amx.h in standard C++, over those of simd_portable.h: the same packed data and
// the same code run on a machine without a tile unit. Slow; for tests only.
#ifndef TRIREME_TESTS_KERNELS_SIMD_EMULATED_TILES_H_
#define TRIREME_TESTS_KERNELS_SIMD_EMULATED_TILES_H_

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/simd_portable.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels::portable {
namespace {

template <int kLane>
inline Lanes BroadcastLane(Lanes a) {
  return Set(a.value[kLane]);
}

// ---- bytes as 32 words of 16 bits
struct Words {
  int16_t value[2 * kLaneCount];
};
// Word i is body(i), its low 16 bits.
template <typename Body>
[[gnu::always_inline]] inline Bytes ForWords(const Body& body) {
  Words words;
  for (int i = 0; i < 2 * kLaneCount; ++i) {
    words.value[i] = static_cast<int16_t>(body(i));
  }
  return std::bit_cast<Bytes>(words);
}
inline int WordOf(Bytes a, int i) { return std::bit_cast<Words>(a).value[i]; }

inline Bytes SetWords(int x) {
  return ForWords([=](int) { return x; });
}
inline Bytes AddWords(Bytes a, Bytes b) {
  return ForWords([&](int i) { return WordOf(a, i) + WordOf(b, i); });
}
inline Bytes SubWords(Bytes a, Bytes b) {
  return ForWords([&](int i) { return WordOf(a, i) - WordOf(b, i); });
}
inline Bytes MulWords(Bytes a, Bytes b) {
  return ForWords([&](int i) { return WordOf(a, i) * WordOf(b, i); });
}
inline Bytes BytesOfInts(IntLanes a) { return std::bit_cast<Bytes>(a); }
inline Bytes EvenBytes(Bytes a) {
  return ForWords([&](int i) { return a.value[2 * i]; });
}
inline Bytes OddBytes(Bytes a) {
  return ForWords([&](int i) { return a.value[2 * i + 1]; });
}
inline Bytes LookUpWords(Bytes table, Bytes indices) {
  return ForWords([&](int i) { return WordOf(table, WordOf(indices, i) & 31); });
}
inline Bytes SignedBytesToPairs(const std::byte* source) {
  constexpr int kOrder[4] = {0, 2, 1, 3};
  return ForWords([=](int i) { return static_cast<int8_t>(source[i / 4 * 4 + kOrder[i % 4]]); });
}

// ---- integers as bfloat16
constexpr int kBFloat16Exponent = -112;
inline Bytes ScaledBFloat16(Bytes words, int exponent) {
  return ForWords([&](int i) {
    const float number = std::ldexp(static_cast<float>(WordOf(words, i)), exponent);
    return std::bit_cast<uint32_t>(number) >> 16;
  });
}
inline Bytes WeightBFloat16(Bytes words) { return ScaledBFloat16(words, kBFloat16Exponent); }
inline Bytes ActivationBFloat16(Bytes words) { return ScaledBFloat16(words, -kBFloat16Exponent); }

// ---- the tile unit
struct Tile {
  uint32_t rows[16][16];
};
inline Tile& TileOf(int tile) {
  static thread_local Tile tiles[8];
  return tiles[tile];
}
inline void ConfigureTiles() {}
inline void ReleaseTiles() {}
template <int kTile>
inline void ClearTile() {
  TileOf(kTile) = {};
}
template <int kTile>
inline void LoadTile(const std::byte* source) {
  std::memcpy(&TileOf(kTile), source, sizeof(Tile));
}
template <int kTile>
inline void LoadTileOnce(const std::byte* source) {
  LoadTile<kTile>(source);
}
template <int kTile>
inline void StoreTile(float* target) {
  std::memcpy(target, &TileOf(kTile), sizeof(Tile));
}
// As a processor's flush-to-zero and denormals-are-zero modes do.
[[gnu::always_inline]] inline float Flushed(float x) {
  return std::fabs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x;
}
// Half kHalf of a pair.
template <int kHalf>
[[gnu::always_inline]] inline float Element(uint32_t pair) {
  return Flushed(BFloat16ToFloat(static_cast<uint16_t>(pair >> 16 * kHalf)));
}
template <int kSums, int kActivations, int kWeights>
inline void MultiplyTiles() {
  const Tile& activations = TileOf(kActivations);
  const Tile& weights = TileOf(kWeights);
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 16; ++n) {
      float first = 0;
      float second = 0;
      for (int k = 0; k < 16; ++k) {
        const uint32_t a = activations.rows[m][k];
        const uint32_t w = weights.rows[k][n];
        first = Flushed(std::fma(Element<0>(a), Element<0>(w), first));
        second = Flushed(std::fma(Element<1>(a), Element<1>(w), second));
      }
      uint32_t& sum = TileOf(kSums).rows[m][n];
      const float total = Flushed(std::bit_cast<float>(sum)) + Flushed(first + second);
      sum = std::bit_cast<uint32_t>(Flushed(total));
    }
  }
}

}  // namespace
}  // namespace trireme::kernels::portable

#endif  // TRIREME_TESTS_KERNELS_SIMD_EMULATED_TILES_H_
