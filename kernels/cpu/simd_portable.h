// The verbs of the table "portable": 16 float or int32 lanes as plain arrays, in standard C++. It
// runs the code of the .inc files on any machine, which shows that code to be right where no vector
// table is at hand, and serves processors that have none. The contract of the verbs is in
// simd_avx512.h. Include from kernels_portable.cc and tests/kernels/emulated_amx_table.cc only.
#ifndef TRIREME_KERNELS_CPU_SIMD_PORTABLE_H_
#define TRIREME_KERNELS_CPU_SIMD_PORTABLE_H_

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/scalar_types.h"

namespace trireme::kernels::portable {
namespace {

constexpr int kLaneCount = 16;

struct Lanes {
  float value[kLaneCount];
};
struct IntLanes {
  int32_t value[kLaneCount];
};
struct Mask {
  bool value[kLaneCount];
};

// result.value[i] = body(i).
template <typename Result, typename Body>
[[gnu::always_inline]] inline Result ForLanes(const Body& body) {
  Result result;
  for (int i = 0; i < kLaneCount; ++i) {
    result.value[i] = body(i);
  }
  return result;
}
template <typename Body>
[[gnu::always_inline]] inline Lanes FloatLanes(const Body& body) {
  return ForLanes<Lanes>(body);
}
// Integer lanes wrap around.
template <typename Body>
[[gnu::always_inline]] inline IntLanes WrappingLanes(const Body& body) {
  return ForLanes<IntLanes>([&](int i) { return static_cast<int32_t>(body(i)); });
}
inline uint32_t Unsigned(int32_t x) { return static_cast<uint32_t>(x); }

// ---- memory
inline Lanes Set(float x) {
  return FloatLanes([=](int) { return x; });
}
inline Lanes Zero() { return Set(0.0F); }
inline Lanes Load(const float* source) {
  Lanes a;
  std::memcpy(a.value, source, sizeof(a.value));
  return a;
}
inline void Store(float* target, Lanes a) { std::memcpy(target, a.value, sizeof(a.value)); }
inline Mask FirstLanes(int count) {
  return ForLanes<Mask>([=](int i) { return i < count; });
}
inline Lanes LoadTail(const float* source, int count) {
  return FloatLanes([=](int i) { return i < count ? source[i] : 0.0F; });
}
inline void StoreTail(float* target, Lanes a, int count) {
  for (int i = 0; i < count; ++i) {
    target[i] = a.value[i];
  }
}
inline Lanes LoadHalf(const uint16_t* source) {
  return FloatLanes([=](int i) { return HalfToFloat(source[i]); });
}
inline Lanes LoadHalfTail(const uint16_t* source, int count) {
  return FloatLanes([=](int i) { return i < count ? HalfToFloat(source[i]) : 0.0F; });
}
inline void StoreHalfTail(uint16_t* target, Lanes a, int count) {
  for (int i = 0; i < count; ++i) {
    target[i] = FloatToHalf(a.value[i]);
  }
}
inline void StoreHalf(uint16_t* target, Lanes a) { StoreHalfTail(target, a, kLaneCount); }
inline Lanes LoadBFloat16(const uint16_t* source) {
  return FloatLanes([=](int i) { return BFloat16ToFloat(source[i]); });
}
inline void Prefetch(const void* source) { __builtin_prefetch(source); }

// ---- float arithmetic
inline Lanes Fma(Lanes a, Lanes b, Lanes c) {
  return FloatLanes([&](int i) { return std::fma(a.value[i], b.value[i], c.value[i]); });
}
inline Lanes Add(Lanes a, Lanes b) {
  return FloatLanes([&](int i) { return a.value[i] + b.value[i]; });
}
inline Lanes Sub(Lanes a, Lanes b) {
  return FloatLanes([&](int i) { return a.value[i] - b.value[i]; });
}
inline Lanes Mul(Lanes a, Lanes b) {
  return FloatLanes([&](int i) { return a.value[i] * b.value[i]; });
}
inline Lanes Div(Lanes a, Lanes b) {
  return FloatLanes([&](int i) { return a.value[i] / b.value[i]; });
}
inline Lanes Sqrt(Lanes a) {
  return FloatLanes([&](int i) { return std::sqrt(a.value[i]); });
}
inline Lanes Min(Lanes a, Lanes b) {
  return FloatLanes([&](int i) { return a.value[i] < b.value[i] ? a.value[i] : b.value[i]; });
}
inline Lanes Max(Lanes a, Lanes b) {
  return FloatLanes([&](int i) { return a.value[i] > b.value[i] ? a.value[i] : b.value[i]; });
}
inline Lanes Abs(Lanes a) {
  return FloatLanes([&](int i) { return std::fabs(a.value[i]); });
}
inline Lanes Negate(Lanes a) {
  return FloatLanes([&](int i) { return -a.value[i]; });
}
inline Lanes RoundToEven(Lanes a) {
  return FloatLanes([&](int i) { return std::nearbyint(a.value[i]); });
}

// ---- comparison; NaN compares false
inline Mask Less(Lanes a, Lanes b) {
  return ForLanes<Mask>([&](int i) { return a.value[i] < b.value[i]; });
}
inline Mask LessEqual(Lanes a, Lanes b) {
  return ForLanes<Mask>([&](int i) { return a.value[i] <= b.value[i]; });
}
inline Mask Equal(Lanes a, Lanes b) {
  return ForLanes<Mask>([&](int i) { return a.value[i] == b.value[i]; });
}
inline Mask IsNan(Lanes a) {
  return ForLanes<Mask>([&](int i) { return std::isnan(a.value[i]); });
}
inline Mask And(Mask a, Mask b) {
  return ForLanes<Mask>([&](int i) { return a.value[i] && b.value[i]; });
}
inline Mask Or(Mask a, Mask b) {
  return ForLanes<Mask>([&](int i) { return a.value[i] || b.value[i]; });
}
inline Mask Not(Mask a) {
  return ForLanes<Mask>([&](int i) { return !a.value[i]; });
}
inline uint32_t Bits(Mask a) {
  uint32_t bits = 0;
  for (int i = 0; i < kLaneCount; ++i) {
    bits |= static_cast<uint32_t>(a.value[i]) << i;
  }
  return bits;
}
inline Lanes Select(Mask mask, Lanes yes, Lanes no) {
  return FloatLanes([&](int i) { return mask.value[i] ? yes.value[i] : no.value[i]; });
}

// ---- int32 lanes
inline IntLanes SetInt(int32_t x) {
  return ForLanes<IntLanes>([=](int) { return x; });
}
inline IntLanes LoadInt(const int32_t* source) {
  IntLanes a;
  std::memcpy(a.value, source, sizeof(a.value));
  return a;
}
inline void StoreInt(int32_t* target, IntLanes a) { std::memcpy(target, a.value, sizeof(a.value)); }
inline IntLanes AddInt(IntLanes a, IntLanes b) {
  return WrappingLanes([&](int i) { return Unsigned(a.value[i]) + Unsigned(b.value[i]); });
}
inline IntLanes SubInt(IntLanes a, IntLanes b) {
  return WrappingLanes([&](int i) { return Unsigned(a.value[i]) - Unsigned(b.value[i]); });
}
inline IntLanes MulInt(IntLanes a, IntLanes b) {
  return WrappingLanes([&](int i) { return Unsigned(a.value[i]) * Unsigned(b.value[i]); });
}
inline IntLanes AndInt(IntLanes a, IntLanes b) {
  return WrappingLanes([&](int i) { return a.value[i] & b.value[i]; });
}
inline IntLanes OrInt(IntLanes a, IntLanes b) {
  return WrappingLanes([&](int i) { return a.value[i] | b.value[i]; });
}
template <int kBits>
inline IntLanes ShiftLeft(IntLanes a) {
  return WrappingLanes([&](int i) { return Unsigned(a.value[i]) << kBits; });
}
template <int kBits>
inline IntLanes ShiftRightSigned(IntLanes a) {
  return WrappingLanes([&](int i) { return a.value[i] >> kBits; });
}
inline Mask GreaterInt(IntLanes a, IntLanes b) {
  return ForLanes<Mask>([&](int i) { return a.value[i] > b.value[i]; });
}
inline IntLanes SelectInt(Mask mask, IntLanes yes, IntLanes no) {
  return WrappingLanes([&](int i) { return mask.value[i] ? yes.value[i] : no.value[i]; });
}

// ---- conversion; what no int32 holds becomes the smallest one, as on x86
inline IntLanes RoundToInt(Lanes a) {
  return ForLanes<IntLanes>([&](int i) {
    const bool in_range = a.value[i] >= -0x1p31F && a.value[i] < 0x1p31F;
    return in_range ? static_cast<int32_t>(std::nearbyint(a.value[i])) : INT32_MIN;
  });
}
inline Lanes ToFloat(IntLanes a) {
  return FloatLanes([&](int i) { return static_cast<float>(a.value[i]); });
}
inline IntLanes BitsOf(Lanes a) {
  return ForLanes<IntLanes>([&](int i) { return std::bit_cast<int32_t>(a.value[i]); });
}
inline Lanes FromBits(IntLanes a) {
  return FloatLanes([&](int i) { return std::bit_cast<float>(a.value[i]); });
}

// ---- folding 16 lanes
inline float FoldSum(Lanes a) {
  for (int half = kLaneCount / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      a.value[i] += a.value[i + half];
    }
  }
  return a.value[0];
}
inline float FoldMax(Lanes a) {
  for (int half = kLaneCount / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      a.value[i] = a.value[i] > a.value[i + half] ? a.value[i] : a.value[i + half];
    }
  }
  return a.value[0];
}

// ---- pairs of neighbouring lanes (rotation), and how much fits into registers
inline Lanes SwapPairs(Lanes a) {
  return FloatLanes([&](int i) { return a.value[i ^ 1]; });
}
inline Lanes LoadPairs(const float* source, int count) {
  return FloatLanes([=](int i) { return i / 2 < count ? source[i / 2] : 0.0F; });
}
inline Lanes NegateEvenLanes(Lanes a) {
  return FloatLanes([&](int i) { return i % 2 == 0 ? -a.value[i] : a.value[i]; });
}
constexpr int kLanesInRegisters = 8;

// ---- bytes: 16 lanes of four; the integer product of weights (unsigned codes) and activations
constexpr int kTilePanels = 1;
constexpr int kTileTokensMax = 2;  // a few, so that this table compiles quickly
constexpr int kTileTokensHalves = 2;
constexpr bool kEightBitsAreSigned = false;

struct Bytes {
  uint8_t value[4 * kLaneCount];
};
// result.value[i] = body(i), its low byte.
template <typename Body>
[[gnu::always_inline]] inline Bytes ForBytes(const Body& body) {
  Bytes result;
  for (int i = 0; i < 4 * kLaneCount; ++i) {
    result.value[i] = static_cast<uint8_t>(body(i));
  }
  return result;
}
inline Bytes LoadBytes(const std::byte* source) {
  Bytes a;
  std::memcpy(a.value, source, sizeof(a.value));
  return a;
}
inline void StoreBytes(std::byte* target, Bytes a) {
  std::memcpy(target, a.value, sizeof(a.value));
}
inline Bytes SetBytes(int x) {
  return ForBytes([=](int) { return x; });
}
inline Bytes BroadcastFour(const std::byte* source) {
  return ForBytes([=](int i) { return source[i % 4]; });
}
inline Bytes AndBytes(Bytes a, Bytes b) {
  return ForBytes([&](int i) { return a.value[i] & b.value[i]; });
}
inline Bytes OrBytes(Bytes a, Bytes b) {
  return ForBytes([&](int i) { return a.value[i] | b.value[i]; });
}
// Words are little-endian.
template <int kBits>
inline Bytes ShiftWords(Bytes a) {
  Bytes result;
  for (int i = 0; i < 4 * kLaneCount; i += 2) {
    const int word = a.value[i] | a.value[i + 1] << 8;
    const int shifted = kBits >= 0 ? word >> kBits : word << -kBits;
    result.value[i] = static_cast<uint8_t>(shifted);
    result.value[i + 1] = static_cast<uint8_t>(shifted >> 8);
  }
  return result;
}
inline Bytes BroadcastSixteen(const uint8_t* source) {
  return ForBytes([=](int i) { return source[i % 16]; });
}
inline Bytes LookUp(Bytes table, Bytes indices) {
  return ForBytes([&](int i) { return table.value[indices.value[i] & 15]; });
}
struct FloatTable {
  const float* entries;
};
inline FloatTable LoadTable(const float* source) { return {source}; }
template <int kShift>
inline Lanes LookUpFloats(FloatTable table, Bytes a) {
  return FloatLanes(
      [&](int i) { return table.entries[a.value[4 * i + kShift / 8] >> (kShift % 8) & 15]; });
}
inline Lanes LoadE4M3(const std::byte* source) {
  return FloatLanes([=](int i) { return E4M3By256(static_cast<uint8_t>(source[i])); });
}
inline Lanes LoadE5M2(const std::byte* source) {
  return FloatLanes([=](int i) { return E5M2ToFloat(static_cast<uint8_t>(source[i])); });
}
template <bool kEightBits>
inline IntLanes DotBytes(IntLanes sum, Bytes weights, Bytes activations) {
  return WrappingLanes([&](int i) {
    int32_t dot = 0;
    for (int j = 4 * i; j < 4 * i + 4; ++j) {
      dot += weights.value[j] * static_cast<int8_t>(activations.value[j]);
    }
    return Unsigned(sum.value[i]) + Unsigned(dot);
  });
}
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
inline IntLanes UnsignedBytesToInt(const std::byte* source) {
  return WrappingLanes([=](int i) { return static_cast<uint8_t>(source[i]); });
}
inline Lanes SignedBytesToFloat(const std::byte* source) {
  return FloatLanes([=](int i) { return static_cast<float>(static_cast<int8_t>(source[i])); });
}
template <int kIndex>
inline IntLanes ByteOfLanes(Bytes a) {
  return WrappingLanes([&](int i) { return a.value[4 * i + kIndex]; });
}
inline void StoreLowBytes(std::byte* target, IntLanes a) {
  for (int i = 0; i < kLaneCount; ++i) {
    target[i] = static_cast<std::byte>(a.value[i]);
  }
}
inline int32_t SumOfSixteenBytes(const std::byte* source) {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) {
    sum += static_cast<int8_t>(source[i]);
  }
  return sum;
}

}  // namespace
}  // namespace trireme::kernels::portable

#endif  // TRIREME_KERNELS_CPU_SIMD_PORTABLE_H_
