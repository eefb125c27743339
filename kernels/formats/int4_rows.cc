#include "kernels/formats/int4_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/formats/hadamard.h"
#include "kernels/formats/int4_layout.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels {
namespace {

constexpr float kLargestCode = 15;
constexpr uint16_t kHalfNan = 0x7E00;
constexpr int kGroupMax = std::max(kInt4KeyGroup, kInt4ValueGroup);
// Two take a sixth off the mean square error of 16 normal numbers; four, a fiftieth more.
constexpr int kRefits = 2;

using Quad = float __attribute__((vector_size(16)));
using IntegerQuad = int32_t __attribute__((vector_size(16)));
constexpr int kQuad = 4;
constexpr int kQuadsMax = kGroupMax / kQuad;

Quad Fill(float x) { return Quad{x, x, x, x}; }
float Sum(Quad x) { return (x[0] + x[2]) + (x[1] + x[3]); }

struct Numbers {
  Quad quads[kQuadsMax];
  int count;  // of quads
};

// The last number is repeated where a quad wants more.
Numbers NumbersOf(const float* x, int64_t count) {
  Numbers numbers;
  numbers.count = static_cast<int>((count + kQuad - 1) / kQuad);
  float all[kGroupMax];
  std::copy_n(x, count, all);
  std::fill(all + count, all + numbers.count * kQuad, x[count - 1]);
  std::memcpy(numbers.quads, all, sizeof(all));
  return numbers;
}

struct Line {
  float scale;
  float minimum;
};

struct Group {
  Int4Scale stored;
  float error;            // sum of squares; NaN where the group is
  Quad codes[kQuadsMax];  // whole numbers
};

Line RangeOf(const Numbers& x) {
  Quad minimum = x.quads[0];
  Quad maximum = x.quads[0];
  Quad zeros = Fill(0);  // NaN where a number is not finite
  for (int i = 0; i < x.count; ++i) {
    minimum = x.quads[i] < minimum ? x.quads[i] : minimum;
    maximum = x.quads[i] > maximum ? x.quads[i] : maximum;
    zeros += x.quads[i] * 0;
  }
  float least = minimum[0];
  float most = maximum[0];
  for (int i = 1; i < kQuad; ++i) {
    least = std::min(least, minimum[i]);
    most = std::max(most, maximum[i]);
  }
  const float zero = Sum(zeros);
  return {.scale = (most - least) / kLargestCode + zero, .minimum = least + zero};
}

Group Encoded(const Numbers& x, Line line) {
  Group group{.stored = {.scale = FloatToHalf(line.scale), .minimum = FloatToHalf(line.minimum)},
              .error = 0,
              .codes = {}};
  const float scale = HalfToFloat(group.stored.scale);
  const float minimum = HalfToFloat(group.stored.minimum);
  if (!std::isfinite(scale) || !std::isfinite(minimum)) {
    group.stored = {.scale = kHalfNan, .minimum = kHalfNan};
    group.error = std::numeric_limits<float>::quiet_NaN();
    return group;
  }
  const float inverse = scale == 0 ? 0 : 1 / scale;
  Quad errors = Fill(0);
  for (int i = 0; i < x.count; ++i) {
    const Quad number = (x.quads[i] - minimum) * inverse + 0.5F;
    const Quad positive = number < 0 ? Fill(0) : number;
    const Quad bounded = positive > kLargestCode ? Fill(kLargestCode) : positive;
    group.codes[i] = __builtin_convertvector(__builtin_convertvector(bounded, IntegerQuad), Quad);
    const Quad difference = x.quads[i] - (group.codes[i] * scale + minimum);
    errors += difference * difference;
  }
  group.error = Sum(errors);
  return group;
}

// The line nearest to x over its codes; NaN where all codes are equal.
Line LeastSquares(const Numbers& x, const Quad* codes) {
  Quad code_sums = Fill(0);
  Quad x_sums = Fill(0);
  for (int i = 0; i < x.count; ++i) {
    code_sums += codes[i];
    x_sums += x.quads[i];
  }
  const auto count = static_cast<float>(x.count * kQuad);
  const float code_mean = Sum(code_sums) / count;
  const float x_mean = Sum(x_sums) / count;
  Quad squares = Fill(0);
  Quad products = Fill(0);
  for (int i = 0; i < x.count; ++i) {
    const Quad code = codes[i] - code_mean;
    squares += code * code;
    products += code * (x.quads[i] - x_mean);
  }
  const float scale = Sum(products) / Sum(squares);
  return {.scale = scale, .minimum = x_mean - scale * code_mean};
}

void CopyCodes(const Group& group, int64_t count, uint8_t* codes) {
  IntegerQuad whole[kQuadsMax];
  for (int i = 0; i * kQuad < count; ++i) {
    whole[i] = __builtin_convertvector(group.codes[i], IntegerQuad);
  }
  int32_t all[kGroupMax];
  std::memcpy(all, whole, sizeof(all));
  for (int64_t i = 0; i < count; ++i) {
    codes[i] = static_cast<uint8_t>(all[i]);
  }
}

uint16_t* Halves(std::byte* head, int64_t offset) {
  return reinterpret_cast<uint16_t*>(head + offset);
}
const uint16_t* Halves(const std::byte* head, int64_t offset) {
  return reinterpret_cast<const uint16_t*>(head + offset);
}

Int4Layout LayoutOf(const KeyValueCache& cache) { return {cache.head_dim, kBlockTokens}; }

int64_t LargestChannel(const float* key, int64_t count) {
  int64_t largest = 0;
  for (int64_t i = 1; i < count; ++i) {
    largest = std::fabs(key[i]) > std::fabs(key[largest]) ? i : largest;
  }
  return largest;
}

// Codes [16] of the channels of a chunk, into rows of bytes `stride` apart.
void PutChunk(const uint8_t* codes, uint8_t* rows, int64_t stride) {
  for (int64_t i = 0; i < kInt4Chunk / 2; ++i) {
    rows[i * stride] = static_cast<uint8_t>(codes[i] | codes[kInt4Chunk / 2 + i] << 4);
  }
}

// Int4Sign of the 16 channels from `first`, were they all of the first run.
void FillSigns(int64_t first, int64_t order, int64_t head_dim, float* signs) {
  signs[0] = Int4Sign(first, order, head_dim);
  for (int64_t bit = 1; bit < kInt4Chunk; bit *= 2) {
    for (int64_t i = 0; i < bit; ++i) {
      signs[bit + i] = (order & bit) != 0 ? -signs[i] : signs[i];
    }
  }
}

void StoreKey(const Int4Layout& layout, float* key, int64_t place, std::byte* head) {
  const int64_t run = HadamardRun(0, layout.head_dim);
  const int64_t order = LargestChannel(key, run);
  Halves(head, layout.KeyOrders())[place] = static_cast<uint16_t>(order);
  ApplyHadamard(key, layout.head_dim);
  for (int64_t first = 0; first < layout.head_dim; first += kInt4KeyGroup) {
    const int64_t count = std::min<int64_t>(kInt4KeyGroup, layout.head_dim - first);
    float signs[kInt4Chunk];
    FillSigns(first, order, layout.head_dim, signs);
    float signed_key[kInt4KeyGroup];
    for (int64_t i = 0; i < count; ++i) {
      signed_key[i] = first + i < run ? key[first + i] * signs[i] : key[first + i];
    }
    uint8_t codes[kInt4Chunk] = {};
    const Int4Scale scale = FitInt4(signed_key, count, codes);
    uint16_t* scales = Halves(head, layout.KeyScales()) + first / kInt4KeyGroup * 2 * layout.tokens;
    scales[place] = scale.scale;
    scales[layout.tokens + place] = scale.minimum;
    PutChunk(codes,
             reinterpret_cast<uint8_t*>(head) + Int4Layout::RowOf(first) * layout.tokens + place,
             layout.tokens);
  }
}

void StoreValue(const Int4Layout& layout, float* value, int64_t place, std::byte* head) {
  ApplyHadamard(value, layout.head_dim);
  uint8_t* rows =
      reinterpret_cast<uint8_t*>(head) + layout.ValueCodes() + place * layout.RowBytes();
  uint16_t* scales = Halves(head, layout.ValueScales()) + place * layout.ValueGroups() * 2;
  for (int64_t first = 0; first < layout.head_dim; first += kInt4ValueGroup, scales += 2) {
    const int64_t count = std::min<int64_t>(kInt4ValueGroup, layout.head_dim - first);
    uint8_t codes[kInt4ValueGroup] = {};
    const Int4Scale scale = FitInt4(value + first, count, codes);
    scales[0] = scale.scale;
    scales[1] = scale.minimum;
    for (int64_t i = 0; i < count; i += kInt4Chunk) {
      PutChunk(codes + i, rows + Int4Layout::RowOf(first + i), 1);
    }
  }
}

}  // namespace

Int4Scale EncodeInt4(const float* x, int64_t count, uint8_t* codes) {
  const Numbers numbers = NumbersOf(x, count);
  const Group group = Encoded(numbers, RangeOf(numbers));
  CopyCodes(group, count, codes);
  return group.stored;
}

Int4Scale FitInt4(const float* x, int64_t count, uint8_t* codes) {
  const Numbers numbers = NumbersOf(x, count);
  Group best = Encoded(numbers, RangeOf(numbers));
  for (int i = 0; i < kRefits; ++i) {
    const Group refitted = Encoded(numbers, LeastSquares(numbers, best.codes));
    if (!(refitted.error < best.error)) {
      break;
    }
    best = refitted;
  }
  CopyCodes(best, count, codes);
  return best.stored;
}

float Int4Sign(int64_t channel, int64_t order, int64_t head_dim) {
  auto shared = static_cast<uint64_t>(channel & order);
  for (const int distance : {32, 16, 8, 4, 2, 1}) {
    shared ^= shared >> distance;
  }
  const bool is_odd = (shared & 1) != 0;
  return channel < HadamardRun(0, head_dim) && is_odd ? -1.0F : 1.0F;
}

void StoreInt4(const KeyValueCache& cache, float* key, float* value, int64_t place,
               std::byte* head) {
  StoreKey(LayoutOf(cache), key, place, head);
  StoreValue(LayoutOf(cache), value, place, head);
}

float Int4Key(const KeyValueCache& cache, const std::byte* head, int64_t place, int64_t channel) {
  const Int4Layout layout = LayoutOf(cache);
  const auto* codes = reinterpret_cast<const uint8_t*>(head);
  const int code =
      codes[Int4Layout::RowOf(channel) * layout.tokens + place] >> Int4Layout::ShiftOf(channel) &
      15;
  const uint16_t* scales =
      Halves(head, layout.KeyScales()) + channel / kInt4KeyGroup * 2 * layout.tokens + place;
  const int64_t order = Halves(head, layout.KeyOrders())[place];
  return std::fma(static_cast<float>(code), HalfToFloat(scales[0]),
                  HalfToFloat(scales[layout.tokens])) *
         Int4Sign(channel, order, layout.head_dim);
}

float Int4Value(const KeyValueCache& cache, const std::byte* head, int64_t place, int64_t channel) {
  const Int4Layout layout = LayoutOf(cache);
  const auto* codes = reinterpret_cast<const uint8_t*>(head) + layout.ValueCodes();
  const int code = codes[place * layout.RowBytes() + Int4Layout::RowOf(channel)] >>
                       Int4Layout::ShiftOf(channel) &
                   15;
  const uint16_t* scales = Halves(head, layout.ValueScales()) +
                           (place * layout.ValueGroups() + channel / kInt4ValueGroup) * 2;
  return std::fma(static_cast<float>(code), HalfToFloat(scales[0]), HalfToFloat(scales[1]));
}

}  // namespace trireme::kernels
