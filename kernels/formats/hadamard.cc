#include "kernels/formats/hadamard.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace trireme::kernels {
namespace {

constexpr int kTogether = 4;  // butterflies that the compiler makes one of

void Butterfly(float& first, float& second) {
  const float sum = first + second;
  const float difference = first - second;
  first = sum;
  second = difference;
}

void Butterflies(float* first, float* second) {
  float sums[kTogether];
  float differences[kTogether];
  for (int i = 0; i < kTogether; ++i) {
    sums[i] = first[i] + second[i];
    differences[i] = first[i] - second[i];
  }
  for (int i = 0; i < kTogether; ++i) {
    first[i] = sums[i];
    second[i] = differences[i];
  }
}

void TransformRun(float* x, int64_t count) {
  for (int64_t distance = 1; distance < count; distance *= 2) {
    for (int64_t begin = 0; begin < count; begin += 2 * distance) {
      if (distance < kTogether) {
        for (int64_t i = begin; i < begin + distance; ++i) {
          Butterfly(x[i], x[i + distance]);
        }
        continue;
      }
      for (int64_t i = begin; i < begin + distance; i += kTogether) {
        Butterflies(x + i, x + i + distance);
      }
    }
  }
  const float factor = 1 / std::sqrt(static_cast<float>(count));
  for (int64_t i = 0; i < count; ++i) {
    x[i] *= factor;
  }
}

}  // namespace

int64_t HadamardRun(int64_t first, int64_t count) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count - first)));
}

void ApplyHadamard(float* row, int64_t count) {
  for (int64_t first = 0; first < count;) {
    const int64_t run = HadamardRun(first, count);
    TransformRun(row + first, run);
    first += run;
  }
}

}  // namespace trireme::kernels
