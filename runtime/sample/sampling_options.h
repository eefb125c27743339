// How one token is drawn from logits. Values are checked at the border (service, flags); inside
// they hold.
#ifndef TRIREME_RUNTIME_SAMPLE_SAMPLING_OPTIONS_H_
#define TRIREME_RUNTIME_SAMPLE_SAMPLING_OPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace trireme::sample {

struct SamplingOptions {
  float temperature = 0;  // [0, 2]; 0 is greedy: the largest logit, the lowest id on ties
  int32_t top_k = 0;      // >= 1, or 0: off
  float top_p = 1;        // (0, 1]
  float min_p = 0;        // [0, 1]: drops tokens less likely than min_p times the likeliest
  uint64_t seed = 0;  // with choice and position the key of the Philox draw: no state, so a stream
                      // continues anywhere
};

// InvalidArgument naming the first field out of range (NaN and infinity are out of every range).
absl::Status ValidateSamplingOptions(const SamplingOptions& options);

}  // namespace trireme::sample

#endif  // TRIREME_RUNTIME_SAMPLE_SAMPLING_OPTIONS_H_
