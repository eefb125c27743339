#include "runtime/sample/exponential.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace trireme::sample {
namespace {

constexpr float kLog2OfE = 0x1.715476p0f;
// ln 2 in two parts; the first has 15 zero bits at its end, so that products with n are exact.
constexpr float kLn2High = 0x1.63p-1f;
constexpr float kLn2Low = -0x1.bd0106p-13f;
// Adding it rounds to a whole number, which then stands in the low bits.
constexpr float kRound = 0x1.8p23f;

// 1 / k! for k = 7 down to 2: the remainder of the series for |x| <= ln(2) / 2 is below 6e-9.
constexpr float kInverseFactorial[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120,
                                       1.0f / 24,   1.0f / 6,   1.0f / 2};

// Four floats are what every processor of ours has in one register (GCC's vector extension).
using FloatLanes = float __attribute__((vector_size(16)));
using IntegerLanes = int32_t __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;

// For one float or four: the same operations on each.
template <typename Real, typename Integer>
inline Real ExponentialOf(Real x) {
  const Real shifted = x * kLog2OfE + kRound;
  const Real n = shifted - kRound;
  const Real rest = (x - n * kLn2High) - n * kLn2Low;
  Real sum = rest * kInverseFactorial[0] + kInverseFactorial[1];
  for (int term = 2; term < 6; ++term) {
    sum = sum * rest + kInverseFactorial[term];
  }
  sum = (sum * rest * rest + rest) + 1.0f;
  const Integer exponent = (std::bit_cast<Integer>(shifted) + 127) << 23;
  return sum * std::bit_cast<Real>(exponent);
}

}  // namespace

float Weight(float logit, float maximum, float inverse_temperature) {
  const float exponent = (logit - maximum) * inverse_temperature;
  return exponent < kExponentMin ? 0 : ExponentialOf<float, int32_t>(exponent);
}

void Weights(absl::Span<const float> logits, float maximum, float inverse_temperature,
             float* weights) {
  const FloatLanes limit = {kExponentMin, kExponentMin, kExponentMin, kExponentMin};
  const FloatLanes zero = {};
  size_t index = 0;
  for (; index + kLanes <= logits.size(); index += kLanes) {
    FloatLanes exponent;
    std::memcpy(&exponent, logits.data() + index, sizeof(exponent));
    exponent = (exponent - maximum) * inverse_temperature;
    // Far below, and at -infinity, the series has no meaning: it is evaluated at the limit.
    const IntegerLanes below = exponent < limit;
    const FloatLanes power = ExponentialOf<FloatLanes, IntegerLanes>(below ? limit : exponent);
    const FloatLanes weight = below ? zero : power;
    std::memcpy(weights + index, &weight, sizeof(weight));
  }
  for (; index < logits.size(); ++index) {
    weights[index] = Weight(logits[index], maximum, inverse_temperature);
  }
}

}  // namespace trireme::sample
