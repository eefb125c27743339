// The Hadamard transform of the rows of a 4-bit KV cache, once for all tables. It spreads a row's
// few large channels over all of them, so that groups of neighbours have a common range; the same
// transform of queries and keys leaves their products as they were (QuaRot, arXiv 2404.00456).
#ifndef TRIREME_KERNELS_FORMATS_HADAMARD_H_
#define TRIREME_KERNELS_FORMATS_HADAMARD_H_

#include <cstdint>

namespace trireme::kernels {

// The channels of the run that starts at `first`: the largest power of two that fits what is left
// of the row; 80 is cut into 64 and 16.
int64_t HadamardRun(int64_t first, int64_t count);

// row [count] = H row in place, H of H[i][j] = (-1)^popcount(i & j) / sqrt(n) for each run of n
// channels; its own inverse. Butterflies of distance 1, 2, 4, ... in float32, then the factor.
void ApplyHadamard(float* row, int64_t count);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_HADAMARD_H_
