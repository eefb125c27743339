#include "runtime/spec/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

namespace trireme::spec {

std::vector<double> PlainFrequencies(int64_t rotated_dim, double theta) {
  std::vector<double> frequencies(rotated_dim / 2);
  for (int64_t p = 0; p < rotated_dim / 2; ++p) {
    frequencies[p] =
        std::pow(theta, -2.0 * static_cast<double>(p) / static_cast<double>(rotated_dim));
  }
  return frequencies;
}

std::vector<double> LinearFrequencies(std::vector<double> frequencies, double factor) {
  for (double& frequency : frequencies) {
    frequency /= factor;
  }
  return frequencies;
}

std::vector<double> Llama3Frequencies(std::vector<double> frequencies,
                                      const Llama3Scaling& scaling) {
  for (double& frequency : frequencies) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength < scaling.original_context / scaling.high_frequency_factor) {
      continue;
    }
    if (wavelength > scaling.original_context / scaling.low_frequency_factor) {
      frequency /= scaling.factor;
      continue;
    }
    const double t = (scaling.original_context / wavelength - scaling.low_frequency_factor) /
                     (scaling.high_frequency_factor - scaling.low_frequency_factor);
    frequency = (1 - t) * frequency / scaling.factor + t * frequency;
  }
  return frequencies;
}

std::vector<double> YarnFrequencies(int64_t rotated_dim, double theta, const YarnScaling& scaling) {
  const double dims = static_cast<double>(rotated_dim);
  const auto dimension_of = [&](double rotations) {
    return dims * std::log(scaling.original_context / (2 * std::numbers::pi * rotations)) /
           (2 * std::log(theta));
  };
  double low = dimension_of(scaling.beta_fast);
  double high = dimension_of(scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dims - 1);
  if (low == high) {
    high += 0.001;
  }
  std::vector<double> frequencies = PlainFrequencies(rotated_dim, theta);
  for (int64_t p = 0; p < rotated_dim / 2; ++p) {
    const double ramp = std::clamp((static_cast<double>(p) - low) / (high - low), 0.0, 1.0);
    frequencies[p] = frequencies[p] * (1 - ramp) + frequencies[p] / scaling.factor * ramp;
  }
  return frequencies;
}

double YarnMultiplier(double factor, double coefficient) {
  return factor <= 1 ? 1 : 0.1 * coefficient * std::log(factor) + 1;
}

}  // namespace trireme::spec
