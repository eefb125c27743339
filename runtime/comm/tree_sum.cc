#include "runtime/comm/tree_sum.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/check.h"

namespace trireme::comm {
namespace {

using Vector = float __attribute__((vector_size(16)));
constexpr int64_t kLanes = sizeof(Vector) / sizeof(float);
constexpr int64_t kLine = 16;  // floats of a cache line
constexpr int64_t kLinesAhead = 16;

template <typename T>
T Load(const float* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T, int kParts>
T TreeAt(const float* const* parts, int64_t index) {
  if constexpr (kParts == 1) {
    return Load<T>(parts[0] + index);
  } else {
    const T left = TreeAt<T, kParts / 2>(parts, index);
    const T right = TreeAt<T, kParts / 2>(parts + kParts / 2, index);
    return left + right;
  }
}

template <int kParts>
void AddParts(const float* const* parts, int64_t count, float* sum) {
  int64_t index = 0;
  for (; index + kLanes <= count; index += kLanes) {
    const Vector value = TreeAt<Vector, kParts>(parts, index);
    std::memcpy(sum + index, &value, sizeof(value));
  }
  for (; index < count; ++index) {
    sum[index] = TreeAt<float, kParts>(parts, index);
  }
}

template <typename T, int kParts>
void ReplaceAt(float* const* parts, int64_t index) {
  const T value = TreeAt<T, kParts>(parts, index);
  for (int part = 0; part < kParts; ++part) {
    std::memcpy(parts[part] + index, &value, sizeof(value));
  }
}

template <int kParts>
void ReplaceParts(float* const* parts, int64_t count) {
  int64_t index = 0;
  for (; index + kLine <= count; index += kLine) {
    const int64_t ahead = std::min(index + kLinesAhead * kLine, count - 1);
    for (int part = 0; part < kParts; ++part) {
      __builtin_prefetch(parts[part] + ahead, /*rw=*/1);
    }
    for (int64_t lane = 0; lane < kLine; lane += kLanes) {
      ReplaceAt<Vector, kParts>(parts, index + lane);
    }
  }
  for (; index < count; ++index) {
    ReplaceAt<float, kParts>(parts, index);
  }
}

}  // namespace

void AddInTreeOrder(absl::Span<const float* const> parts, int64_t count, float* sum) {
  switch (parts.size()) {
    case 1:
      return AddParts<1>(parts.data(), count, sum);
    case 2:
      return AddParts<2>(parts.data(), count, sum);
    case 4:
      return AddParts<4>(parts.data(), count, sum);
    case 8:
      return AddParts<8>(parts.data(), count, sum);
    default:
      CHECK_EQ(parts.size(), 8U);
  }
}

void ReplaceByTreeSum(absl::Span<float* const> parts, int64_t count) {
  switch (parts.size()) {
    case 1:
      return;
    case 2:
      return ReplaceParts<2>(parts.data(), count);
    case 4:
      return ReplaceParts<4>(parts.data(), count);
    case 8:
      return ReplaceParts<8>(parts.data(), count);
    default:
      CHECK_EQ(parts.size(), 8U);
  }
}

}  // namespace trireme::comm
