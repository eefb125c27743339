// The scalar functions that every table computes with the same operations in the same order, so
// that softmax and SiLU have the same bits everywhere. Not for files of one instruction set: they
// have the lane versions.
#ifndef TRIREME_KERNELS_REFERENCE_MATH_H_
#define TRIREME_KERNELS_REFERENCE_MATH_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/reference/exp_polynomial.h"

namespace trireme::kernels {

// e^x within 2 ulp for kExpMin <= x <= kExpMax. x < kExpMin, -infinity included, gives +0; x >
// kExpMax gives +infinity; NaN gives NaN; +0 and -0 give exactly 1.
inline float Exp(float x) {
  if (x < kExpMin) {
    return 0;
  }
  if (x > kExpMax) {
    return std::numeric_limits<float>::infinity();
  }
  if (std::isnan(x)) {
    return x;
  }
  const float shifted = std::fma(x, kExpLog2E, kExpRounder);
  const float n = shifted - kExpRounder;
  const float r = std::fma(n, -kExpLn2Low, std::fma(n, -kExpLn2High, x));
  float p = kExpCoefficient6;
  p = std::fma(p, r, kExpCoefficient5);
  p = std::fma(p, r, kExpCoefficient4);
  p = std::fma(p, r, kExpCoefficient3);
  p = std::fma(p, r, kExpCoefficient2);
  p = std::fma(p, r, 1.0F);
  p = std::fma(p, r, 1.0F);
  // n is in the low bits of `shifted`; the shift moves it into the exponent and drops the rest.
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) +
                              (std::bit_cast<uint32_t>(shifted) << 23));
}

// z / (1 + exp(-z)).
inline float Silu(float z) { return z / (1.0F + Exp(-z)); }

inline float GatedSilu(float gate, float up) { return Silu(gate) * up; }

// tanh(z) = 1 - 2 / (e^2z + 1); absolute error below 3e-7.
inline float Tanh(float z) { return 1.0F - 2.0F / (Exp(z + z) + 1.0F); }

// cap * tanh(z / cap), with the reciprocal of cap taken once.
inline float SoftCap(float z, float cap) { return Tanh(z * (1.0F / cap)) * cap; }

inline float GeluTanh(float z) {
  return z / (1.0F + Exp(-(z * std::fma(z * z, kGeluCubic, kGeluLinear))));
}

// NaN gives 0, as a vector maximum does.
inline float Relu2(float z) {
  const float positive = z > 0 ? z : 0.0F;
  return positive * positive;
}

inline float ClampedSwish(float gate, float up, float limit, float alpha) {
  const float g = limit < gate ? limit : gate;
  const float below = limit < up ? limit : up;
  const float u = below < -limit ? -limit : below;
  return g / (1.0F + Exp(-(g * alpha))) * (u + 1.0F);
}

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_REFERENCE_MATH_H_
