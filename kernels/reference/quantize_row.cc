#include "kernels/reference/quantize_row.h"

#include <cmath>
#include <limits>

#include "kernels/kernel_table.h"

namespace trireme::kernels::reference {
namespace {

int64_t RowBytes(int64_t columns) {
  return columns + columns / kGroupValues * static_cast<int64_t>(sizeof(float));
}

}  // namespace

int64_t QuantizedBytes(int64_t tokens, int64_t columns) { return tokens * RowBytes(columns); }

QuantizedRow RowOf(const std::byte* quantized, int64_t token_index, int64_t columns) {
  const std::byte* row = quantized + token_index * RowBytes(columns);
  return {reinterpret_cast<const int8_t*>(row), reinterpret_cast<const float*>(row + columns)};
}

void QuantizeRow(const float* x, int64_t columns, std::byte* quantized, int64_t token_index,
                 int64_t /*tokens*/) {
  std::byte* row = quantized + token_index * RowBytes(columns);
  int8_t* codes = reinterpret_cast<int8_t*>(row);
  float* scales = reinterpret_cast<float*>(row + columns);
  for (int64_t first = 0; first < columns; first += kGroupValues) {
    float maximum = 0;
    bool has_nan = false;
    for (int i = 0; i < kGroupValues; ++i) {
      const float magnitude = std::fabs(x[first + i]);
      has_nan = has_nan || std::isnan(magnitude);
      maximum = magnitude > maximum ? magnitude : maximum;
    }
    const float inverse = maximum == 0 ? 0.0F : 127.0F / maximum;
    for (int i = 0; i < kGroupValues; ++i) {
      const float scaled = x[first + i] * inverse;
      // NaN, and the infinities that the inverse of a maximum below 2^-121 gives, become 0.
      const bool in_range = std::fabs(scaled) < 128.0F;
      codes[first + i] = in_range ? static_cast<int8_t>(std::nearbyint(scaled)) : int8_t{0};
    }
    scales[first / kGroupValues] =
        has_nan ? std::numeric_limits<float>::quiet_NaN() : maximum / 127.0F;
  }
}

}  // namespace trireme::kernels::reference
