// The numbers of our one exponential and of the functions made of it; the operations are in
// reference/math.h (scalar) and cpu/norm_rope_activation.inc (lanes). Constants only, so that files
// compiled for one instruction set may include it.
//
// e^x = 2^n * e^r with n = x * log2(e) rounded to an integer and r = x - n * ln 2, |r| <= 0.3467.
// e^r = 1 + r + r^2 * q(r); q interpolates (e^r - 1 - r) / r^2 in the five Chebyshev nodes of that
// range, which leaves a relative error below 1.1e-8 (0.09 ulp) after rounding its coefficients.
#ifndef TRIREME_KERNELS_REFERENCE_EXP_POLYNOMIAL_H_
#define TRIREME_KERNELS_REFERENCE_EXP_POLYNOMIAL_H_

namespace trireme::kernels {

// Below: 0, before the result would be subnormal (-126 ln 2 = -87.336). Above: infinity (128 ln 2).
inline constexpr float kExpMin = -87.0F;
inline constexpr float kExpMax = 88.72283F;

inline constexpr float kExpLog2E = 0x1.715476p+0F;
// Adding 1.5 * 2^23 leaves the rounded integer in the low bits of the sum.
inline constexpr float kExpRounder = 12582912.0F;
inline constexpr float kExpLn2High = 0x1.62e43p-1F;
inline constexpr float kExpLn2Low = -0x1.05c61p-29F;

inline constexpr float kExpCoefficient2 = 0.5F;
inline constexpr float kExpCoefficient3 = 0x1.5554dcp-3F;
inline constexpr float kExpCoefficient4 = 0x1.55551ap-5F;
inline constexpr float kExpCoefficient5 = 0x1.120b8p-7F;
inline constexpr float kExpCoefficient6 = 0x1.6d111cp-10F;

// gelu(z) = z / (1 + e^-(z (kGeluLinear + kGeluCubic z^2))), the tanh form: 2 sqrt(2 / pi), and the
// same times 0.044715.
inline constexpr float kGeluLinear = 1.5957691216F;
inline constexpr float kGeluCubic = 0.0713548162726F;

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_REFERENCE_EXP_POLYNOMIAL_H_
