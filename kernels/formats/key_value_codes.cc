#include "kernels/formats/key_value_codes.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/scalar_types.h"

namespace trireme::kernels {
namespace {

constexpr float kLargestE4M3 = 448;
constexpr uint8_t kLargestE4M3Code = 0x7E;

float LargestNumber(KeyValueFormat format) {
  return format == KeyValueFormat::kInt8 ? 127.0F : kLargestE4M3;
}

uint8_t Int8Code(float number) {
  const float nearest = std::nearbyint(number);
  const float bounded = nearest > 127 ? 127 : nearest < -127 ? -127 : nearest;
  return static_cast<uint8_t>(std::isnan(bounded) ? 0 : static_cast<int8_t>(bounded));
}

// 1 sign, 4 of exponent (bias 7), 3 of mantissa; subnormal below 2^-6, in steps of 2^-9.
uint8_t E4M3Code(float number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  const auto sign = static_cast<uint8_t>((bits >> 24) & 0x80);
  const float magnitude = std::fabs(number);
  if (std::isnan(number)) {
    return 0;
  }
  if (magnitude >= kLargestE4M3) {
    return sign | kLargestE4M3Code;
  }
  if (magnitude < 0x1p-6F) {
    return sign | static_cast<uint8_t>(std::nearbyint(magnitude * 0x1p9F));
  }
  const uint32_t rounded = (bits & 0x7FFFFFFF) + 0x7FFFF + ((bits >> 20) & 1);
  return sign | static_cast<uint8_t>((rounded >> 20) - (120U << 3));
}

struct RowScale {
  float inverse;  // numbers of a value
  float scale;    // value of a number
};

RowScale ScaleOf(KeyValueFormat format, const float* row, int64_t count) {
  float maximum = 0;
  bool has_nan = false;
  for (int64_t i = 0; i < count; ++i) {
    const float magnitude = std::fabs(row[i]);
    has_nan = has_nan || !(magnitude <= std::numeric_limits<float>::max());
    maximum = magnitude > maximum ? magnitude : maximum;
  }
  const float largest = LargestNumber(format);
  const float scale = maximum / largest;
  if (has_nan) {
    return {0, std::numeric_limits<float>::quiet_NaN()};
  }
  // So small that its inverse overflows: the row counts as zeros.
  return scale < std::numeric_limits<float>::min() ? RowScale{0, 0}
                                                   : RowScale{largest / maximum, scale};
}

}  // namespace

float NumberOf(KeyValueFormat format, uint8_t code) {
  return format == KeyValueFormat::kInt8 ? static_cast<float>(static_cast<int8_t>(code))
                                         : E4M3ToFloat(code);
}

uint8_t CodeOf(KeyValueFormat format, float number) {
  return format == KeyValueFormat::kInt8 ? Int8Code(number) : E4M3Code(number);
}

void StoreNarrow(const KeyValueCache& cache, const float* key, const float* value, int64_t place,
                 std::byte* head) {
  const int64_t head_dim = cache.head_dim;
  const int64_t value_place = (kBlockTokens + place) * head_dim;
  if (cache.format == KeyValueFormat::kBF16) {
    auto* target = reinterpret_cast<uint16_t*>(head);
    for (int64_t d = 0; d < head_dim; ++d) {
      target[d * kBlockTokens + place] = FloatToBFloat16(key[d]);
      target[value_place + d] = FloatToBFloat16(value[d]);
    }
    return;
  }
  auto* target = reinterpret_cast<uint8_t*>(head);
  float* scales = cache.Scales(head);
  const RowScale of_key = ScaleOf(cache.format, key, head_dim);
  const RowScale of_value = ScaleOf(cache.format, value, head_dim);
  scales[place] = of_key.scale;
  scales[kBlockTokens + place] = of_value.scale;
  for (int64_t d = 0; d < head_dim; ++d) {
    target[d * kBlockTokens + place] = CodeOf(cache.format, key[d] * of_key.inverse);
    target[value_place + d] = CodeOf(cache.format, value[d] * of_value.inverse);
  }
}

}  // namespace trireme::kernels
