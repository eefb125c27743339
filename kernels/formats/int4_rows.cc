#include "kernels/formats/int4_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/formats/hadamard.h"
#include "kernels/formats/int4_layout.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {
namespace {

constexpr uint8_t kNanScale = 0xFC;
constexpr uint8_t kLargestScale = 0xF7;  // 61440

using Quad = float __attribute__((vector_size(16)));
using IntegerQuad = int32_t __attribute__((vector_size(16)));
constexpr int kQuad = 4;
constexpr int kQuadsMax = kInt4Group / kQuad;

Quad Fill(float x) { return Quad{x, x, x, x}; }
float Sum(Quad x) { return (x[0] + x[2]) + (x[1] + x[3]); }

constexpr int kPositiveMax = 1 << (kInt4Key.bits - 1);

// Halfway between neighbouring positive levels, in units: whole numbers.
struct Middles {
  std::array<float, kPositiveMax> values{};
  int count = 0;
};
constexpr Middles MiddlesOf(const Int4Code& code) {
  Middles middles;
  for (int i = code.Levels() / 2; i + 1 < code.Levels(); ++i) {
    middles.values[static_cast<size_t>(middles.count++)] = (code.Level(i) + code.Level(i + 1)) / 2;
  }
  return middles;
}
constexpr Middles kKeyMiddles = MiddlesOf(kInt4Key);
constexpr Middles kValueMiddles = MiddlesOf(kInt4Value);

// Magnitudes of a group, filled up with zeros that do not count.
struct Magnitudes {
  Quad quads[kQuadsMax];
  Quad counts[kQuadsMax];  // 1 or 0
  int count;               // of quads
};

Magnitudes MagnitudesOf(const float* x, int64_t count) {
  float all[kInt4Group] = {};
  float counts[kInt4Group] = {};
  for (int64_t i = 0; i < count; ++i) {
    all[i] = std::fabs(x[i]);
    counts[i] = 1;
  }
  Magnitudes magnitudes;
  magnitudes.count = static_cast<int>((count + kQuad - 1) / kQuad);
  std::memcpy(magnitudes.quads, all, sizeof(all));
  std::memcpy(magnitudes.counts, counts, sizeof(counts));
  return magnitudes;
}

// NaN where a number is NaN or infinite.
float LargestOf(const Magnitudes& x) {
  Quad largest = x.quads[0];
  Quad zeros = Fill(0);
  for (int i = 0; i < x.count; ++i) {
    largest = x.quads[i] > largest ? x.quads[i] : largest;
    zeros += x.quads[i] * 0;
  }
  return std::max(std::max(largest[0], largest[1]), std::max(largest[2], largest[3])) + Sum(zeros);
}

struct Group {
  IntegerQuad levels[kQuadsMax];  // which positive one
  float error;                    // sum of squares
};

Group Encoded(const Int4Code& code, const Magnitudes& x, uint8_t scale_byte) {
  const Middles& middles = code.bits == kInt4Key.bits ? kKeyMiddles : kValueMiddles;
  const float scale = HalfToFloat(Int4ScaleBits(scale_byte)) * code.unit;
  const float inverse = scale == 0 ? 0 : 1 / scale;
  Group group;
  Quad errors = Fill(0);
  for (int i = 0; i < x.count; ++i) {
    const Quad number = x.quads[i] * inverse;
    IntegerQuad level = {};
    for (int m = 0; m < middles.count; ++m) {
      level -= number >= Fill(middles.values[static_cast<size_t>(m)]);
    }
    const Quad odd = __builtin_convertvector(2 * level + 1, Quad);
    const Quad difference = x.quads[i] - odd * (code.curve + odd * odd) * scale;
    errors += difference * difference * x.counts[i];
    group.levels[i] = level;
  }
  group.error = Sum(errors);
  return group;
}

void CopyCodes(const Int4Code& code, const Group& group, const float* x, int64_t count,
               uint8_t* codes) {
  const int positive = code.Levels() / 2;
  int32_t levels[kInt4Group];
  std::memcpy(levels, group.levels, sizeof(levels));
  for (int64_t i = 0; i < count; ++i) {
    codes[i] =
        static_cast<uint8_t>(std::signbit(x[i]) ? positive - 1 - levels[i] : positive + levels[i]);
  }
}

uint8_t* Bytes(std::byte* head, int64_t offset) {
  return reinterpret_cast<uint8_t*>(head) + offset;
}
const uint8_t* Bytes(const std::byte* head, int64_t offset) {
  return reinterpret_cast<const uint8_t*>(head) + offset;
}

Int4Layout LayoutOf(const KeyValueCache& cache) { return {cache.head_dim, kBlockTokens}; }

// Where the parts of a row are; neighbouring bytes of it stand `stride` apart.
template <typename Byte>
struct RowParts {
  Byte* codes;
  Byte* planes;
  Byte* scales;
  int64_t plane_bytes;
  int64_t stride;
};

// Of a head that may be written, or only read.
template <typename Head>
using ByteOf = std::remove_pointer_t<decltype(Bytes(std::declval<Head*>(), 0))>;

template <typename Head>
RowParts<ByteOf<Head>> KeyParts(const Int4Layout& layout, Head* head, int64_t place) {
  return {.codes = Bytes(head, place),
          .planes = Bytes(head, layout.KeyBits() + place),
          .scales = Bytes(head, layout.KeyScales() + place),
          .plane_bytes = layout.PlaneBytes(),
          .stride = layout.tokens};
}

template <typename Head>
RowParts<ByteOf<Head>> ValueParts(const Int4Layout& layout, Head* head, int64_t place) {
  return {.codes = Bytes(head, layout.ValueCodes() + place * layout.RowBytes()),
          .planes = Bytes(head, layout.ValueBits() + place * layout.PlaneBytes()),
          .scales = Bytes(head, layout.ValueScales() + place * layout.Groups()),
          .plane_bytes = layout.PlaneBytes(),
          .stride = 1};
}

// Codes [32] of the channels from `first`.
void PutChunk(const uint8_t* codes, int64_t first, int bits, const RowParts<uint8_t>& parts) {
  uint8_t* halves = parts.codes + Int4Layout::RowOf(first) * parts.stride;
  for (int64_t i = 0; i < kInt4Half; ++i) {
    halves[i * parts.stride] =
        static_cast<uint8_t>((codes[i] & 15) | (codes[kInt4Half + i] & 15) << 4);
  }
  for (int plane = 0; plane < bits - 4; ++plane) {
    uint8_t* bytes = parts.planes + (plane * parts.plane_bytes + first / 8) * parts.stride;
    for (int64_t byte = 0; byte < kInt4Chunk / 8; ++byte) {
      int packed = 0;
      for (int64_t i = 0; i < 8; ++i) {
        packed |= (codes[8 * byte + i] >> (4 + plane) & 1) << i;
      }
      bytes[byte * parts.stride] = static_cast<uint8_t>(packed);
    }
  }
}

void StoreRow(const Int4Code& code, const float* row, int64_t head_dim,
              const RowParts<uint8_t>& parts) {
  for (int64_t first = 0; first < head_dim; first += kInt4Group) {
    const int64_t count = std::min<int64_t>(kInt4Group, head_dim - first);
    uint8_t codes[kInt4Group] = {};
    parts.scales[first / kInt4Group * parts.stride] = EncodeInt4(code, row + first, count, codes);
    for (int64_t i = 0; i < count; i += kInt4Chunk) {
      PutChunk(codes + i, first + i, code.bits, parts);
    }
  }
}

float ReadChannel(const Int4Code& code, const RowParts<const uint8_t>& parts, int64_t channel) {
  int number =
      parts.codes[Int4Layout::RowOf(channel) * parts.stride] >> Int4Layout::ShiftOf(channel) & 15;
  for (int plane = 0; plane < code.bits - 4; ++plane) {
    const uint8_t byte = parts.planes[(plane * parts.plane_bytes + channel / 8) * parts.stride];
    number |= (byte >> channel % 8 & 1) << (4 + plane);
  }
  const uint8_t scale = parts.scales[channel / kInt4Group * parts.stride];
  return code.Level(number) * (HalfToFloat(Int4ScaleBits(scale)) * code.unit);
}

}  // namespace

uint8_t EncodeInt4(const Int4Code& code, const float* x, int64_t count, uint8_t* codes) {
  const Magnitudes magnitudes = MagnitudesOf(x, count);
  const float largest_level = code.Level(code.Levels() - 1) * code.unit;
  const int below = FloatToHalf(LargestOf(magnitudes) / largest_level) >> 7 & 0xFF;
  if (below >= kLargestScale) {
    std::fill_n(codes, count, uint8_t{0});
    return kNanScale;
  }
  const auto smaller = static_cast<uint8_t>(below);
  const auto larger = static_cast<uint8_t>(below + 1);
  const Group with_smaller = Encoded(code, magnitudes, smaller);
  const Group with_larger = Encoded(code, magnitudes, larger);
  const bool is_smaller = with_smaller.error < with_larger.error;
  CopyCodes(code, is_smaller ? with_smaller : with_larger, x, count, codes);
  return is_smaller ? smaller : larger;
}

void StoreInt4(const KeyValueCache& cache, float* key, float* value, int64_t place,
               std::byte* head) {
  const Int4Layout layout = LayoutOf(cache);
  ApplyHadamard(key, layout.head_dim);
  StoreRow(kInt4Key, key, layout.head_dim, KeyParts(layout, head, place));
  ApplyHadamard(value, layout.head_dim);
  StoreRow(kInt4Value, value, layout.head_dim, ValueParts(layout, head, place));
}

float Int4KeyAt(const KeyValueCache& cache, const std::byte* head, int64_t place, int64_t channel) {
  return ReadChannel(kInt4Key, KeyParts(LayoutOf(cache), head, place), channel);
}

float Int4ValueAt(const KeyValueCache& cache, const std::byte* head, int64_t place,
                  int64_t channel) {
  return ReadChannel(kInt4Value, ValueParts(LayoutOf(cache), head, place), channel);
}

}  // namespace trireme::kernels
