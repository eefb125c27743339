// Looks for weights that are no finite numbers: NaN or an infinity, of the weight itself or of a
// scale that makes all the weights of its block such. A file that was damaged, or written from a
// training run that diverged, has them.
#ifndef TRIREME_RUNTIME_WEIGHTS_FINITE_SCAN_H_
#define TRIREME_RUNTIME_WEIGHTS_FINITE_SCAN_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "kernels/kernel_table.h"

namespace trireme::weights {

struct BadValue {
  int64_t row = 0;     // in the slice
  int64_t column = 0;  // in the slice
  float value = 0;
};

// The first one of the slice that `args` would pack (`packed` is not used), by rows. Reads floats
// as they are, of blocks of integers their scales only, and decodes blocks of floats. Any thread.
std::optional<BadValue> FindBadValue(const kernels::PackArgs& args);

// The first one of a vector, in row 0.
std::optional<BadValue> FindBadValue(absl::Span<const float> values);

// Whether all are finite numbers.
bool AreFinite(absl::Span<const float> values);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_FINITE_SCAN_H_
