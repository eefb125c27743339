// Rows of a step that hold what is no finite number: where it began, for each row. Weights that are
// damaged, and hardware that is, show here first. A row that has lost its numbers never gets them
// back, and touches no other row than those of its own sequence.
#ifndef TRIREME_RUNTIME_MODEL_ROW_FAULTS_H_
#define TRIREME_RUNTIME_MODEL_ROW_FAULTS_H_

#include <cstdint>
#include <limits>

#include "absl/types/span.h"
#include "kernels/execution.h"

namespace trireme::model {

// Places in a row's way through the model, in order: the embedding, the layers by their number,
// the output matrix, none.
inline constexpr int32_t kFaultInEmbedding = -1;
inline constexpr int32_t kFaultInOutput = std::numeric_limits<int32_t>::max() - 1;
inline constexpr int32_t kNoFault = std::numeric_limits<int32_t>::max();

// Lowers faults[row] to `place` for each row of x [faults.size(), columns] that holds NaN or an
// infinity. Allocates nothing.
void FindFaults(const kernels::Execution& execution, const float* x, int64_t columns, int32_t place,
                absl::Span<int32_t> faults);

// Between stages a row carries its fault in the place of its values, as NaNs. Write replaces rows
// that have one; Read finds it again, and calls one of another origin `place`.
void WriteFaults(absl::Span<const int32_t> faults, int64_t columns, float* x);
void ReadFaults(const kernels::Execution& execution, const float* x, int64_t columns, int32_t place,
                absl::Span<int32_t> faults);

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_ROW_FAULTS_H_
