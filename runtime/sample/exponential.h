// The weights of tokens, exp as fixed float operations, so that a draw is the same on every
// machine: the C library's own exp picks another instruction sequence, and now and then another
// last bit, on another processor.
#ifndef TRIREME_RUNTIME_SAMPLE_EXPONENTIAL_H_
#define TRIREME_RUNTIME_SAMPLE_EXPONENTIAL_H_

#include "absl/types/span.h"

namespace trireme::sample {

// Below this exponent the weight of a token is taken as 0.
inline constexpr float kExponentMin = -40;

// The weight of a logit: e to the power of x = (logit - maximum) * inverse_temperature, relative
// error below 3e-7 + 1.2e-7 |x|, or 0 when x is below kExponentMin. logit <= maximum, which is
// finite; inverse_temperature is finite and above 0.
float Weight(float logit, float maximum, float inverse_temperature);

// Weight of each logit, weights [logits]: the same bits as Weight, several at a time.
void Weights(absl::Span<const float> logits, float maximum, float inverse_temperature,
             float* weights);

}  // namespace trireme::sample

#endif  // TRIREME_RUNTIME_SAMPLE_EXPONENTIAL_H_
