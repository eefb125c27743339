// Frequencies of rotary position embedding (specs: docs/weight_formats.md names the keys): the
// plain ones and the published ways to stretch them. Pure functions in double precision. R =
// rotated_dim, p = 0 .. R/2 - 1.
#ifndef TRIREME_RUNTIME_SPEC_ROPE_SCALING_H_
#define TRIREME_RUNTIME_SPEC_ROPE_SCALING_H_

#include <cstdint>
#include <vector>

namespace trireme::spec {

// theta^(-2p / R).
std::vector<double> PlainFrequencies(int64_t rotated_dim, double theta);

// f / factor.
std::vector<double> LinearFrequencies(std::vector<double> frequencies, double factor);

// Llama 3.1: wavelengths above original_context / low_factor are stretched by `factor`, those below
// original_context / high_factor are kept, those between are blended.
struct Llama3Scaling {
  double factor = 8;
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  double original_context = 8192;
};
std::vector<double> Llama3Frequencies(std::vector<double> frequencies,
                                      const Llama3Scaling& scaling);

// YaRN (Peng et al. 2023, arXiv 2309.00071): low p kept, high p divided by `factor`, a ramp between
// the dimensions at which beta_fast and beta_slow rotations fit into the original context.
struct YarnScaling {
  double factor = 1;
  double original_context = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;  // ramp ends rounded outwards to whole dimensions
};
std::vector<double> YarnFrequencies(int64_t rotated_dim, double theta, const YarnScaling& scaling);

// 0.1 coefficient ln(factor) + 1, or 1 for factor <= 1: YaRN's multiplier of cosines and sines.
double YarnMultiplier(double factor, double coefficient);

}  // namespace trireme::spec

#endif  // TRIREME_RUNTIME_SPEC_ROPE_SCALING_H_
