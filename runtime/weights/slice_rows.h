// Rows of a planned slice as a kernel table's packer wants them: where they lie in the mapped file,
// or, when they are decoded, transposed or quantised in a published way, gathered in a buffer.
#ifndef TRIREME_RUNTIME_WEIGHTS_SLICE_ROWS_H_
#define TRIREME_RUNTIME_WEIGHTS_SLICE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel_table.h"
#include "runtime/weights/shard_plan.h"
#include "topology/partition.h"

namespace trireme::weights {

// Rows are packed in runs that begin at a multiple of this: all tables pack rows in panels that
// divide it, so packed runs one after another are the packed slice.
inline constexpr int64_t kPanelRowsMax = 16;

// What a run of rows is gathered in. Grows to the largest run and is used again.
struct RowBuffer {
  std::vector<std::byte> bytes;
  std::vector<float> values;
};

// Rows of a run: about 1 MiB of what is read or gathered, in whole panels.
int64_t RowsOfRun(const PlannedTensor& tensor, const PlannedSlice& slice);

// What packs `rows` of the slice, counted from its first; only `packed` is left open. Valid while
// the checkpoint lives and until the buffer is used again. InvalidArgument names the tensor that
// holds what is no number.
absl::StatusOr<kernels::PackArgs> SliceRows(const PlannedTensor& tensor, const PlannedSlice& slice,
                                            topology::Range rows, RowBuffer* buffer);

// Where an element of a slice lies in the stored tensor.
struct StoredPlace {
  int64_t row = 0;
  int64_t column = 0;
};
StoredPlace PlaceOf(const PlannedTensor& tensor, const PlannedSlice& slice, int64_t slice_row,
                    int64_t slice_column);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_SLICE_ROWS_H_
