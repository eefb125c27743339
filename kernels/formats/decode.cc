#include "kernels/formats/decode.h"

#include <algorithm>
#include <cstring>

#include "kernels/formats/all_formats.h"

namespace trireme::kernels {

void DecodeRow(WeightFormat format, const std::byte* row, int64_t first_column, int64_t columns,
               float* values) {
  VisitFormat(format, [&](auto block) {
    using Block = decltype(block);
    constexpr int64_t kValues = InfoOf(Block::kFormat).storage_values;
    const int64_t end = first_column + columns;
    for (int64_t index = first_column / kValues; index * kValues < end; ++index) {
      std::memcpy(&block, row + index * static_cast<int64_t>(sizeof(Block)), sizeof(Block));
      const int64_t first = std::max(first_column, index * kValues);
      const int64_t last = std::min(end, (index + 1) * kValues);
      for (int64_t column = first; column < last; ++column) {
        values[column - first_column] = block.Value(static_cast<int>(column - index * kValues));
      }
    }
  });
}

int64_t StoredRowBytes(WeightFormat format, int64_t columns) {
  const WeightFormatInfo& info = InfoOf(format);
  return columns / info.storage_values * info.storage_bytes;
}

}  // namespace trireme::kernels
