// The one order in which partial results are added over ranks: the levels of a binary tree.
#ifndef TRIREME_RUNTIME_COMM_TREE_SUM_H_
#define TRIREME_RUNTIME_COMM_TREE_SUM_H_

#include <cstdint>

#include "absl/types/span.h"

namespace trireme::comm {

// sum[i] = ((p0[i] + p1[i]) + (p2[i] + p3[i])) + ..., for 1, 2, 4 or 8 parts of `count` floats.
// `sum` may be one of the parts. Any thread.
void AddInTreeOrder(absl::Span<const float* const> parts, int64_t count, float* sum);

// Puts that sum in the place of each part. Made for parts that lie in the caches of other cores:
// their lines are asked for ahead, to be written. Any thread.
void ReplaceByTreeSum(absl::Span<float* const> parts, int64_t count);

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_TREE_SUM_H_
