// The plan of a shard, a pure value: for each slice that a rank holds, where it comes from and how
// many bytes it takes, exactly, before anything is loaded (load_shard.h fills it).
#ifndef TRIREME_RUNTIME_WEIGHTS_SHARD_PLAN_H_
#define TRIREME_RUNTIME_WEIGHTS_SHARD_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel_table.h"
#include "runtime/spec/tensor_roles.h"
#include "runtime/weights/checkpoint.h"
#include "topology/partition.h"

namespace trireme::weights {

// One slice of one tensor: `rows` from first_row on, columns from first_column on.
struct PlannedSlice {
  kernels::SliceShape shape;  // the format it is packed in
  int leaf_index = 0;
  int64_t first_row = 0;
  int64_t arena_offset = 0;
  int64_t arena_bytes = 0;
  // The tensor's own format differs: a leaf begins inside a group of 32, or the matrix is stored
  // transposed in a format of groups, so the slice is decoded and kept as F32.
  bool is_decoded = false;
};

struct PlannedTensor {
  spec::Role role = spec::Role::kEmbedding;
  int64_t layer = -1;  // -1 outside the layers
  int64_t index = 0;   // of an expert or head
  StoredTensor stored;
  // Element (r, c) of the role's matrix lies in stored row first_row + r * row_step at column c, or
  // transposed in stored row first_row + c at column first_column + r * row_step.
  int64_t first_row = 0;
  int64_t first_column = 0;
  int64_t row_step = 1;
  bool is_transposed = false;
  bool is_vector = false;  // float32 values, not packed; transposed, of one column
  float value_offset = 0;  // added to a vector's values
  std::vector<PlannedSlice> slices;
};

struct ShardPlan {
  topology::RankPart part;
  std::vector<PlannedTensor> tensors;
  int64_t arena_bytes = 0;   // of the packed weights
  int64_t source_bytes = 0;  // that the load reads from the file
};

// NotFound and InvalidArgument naming the tensor when one is missing or has other extents. Checks
// all tensors of the model, not only this rank's, so that every rank refuses the same files.
absl::StatusOr<ShardPlan> PlanShard(const Checkpoint& checkpoint, const topology::RankPart& part,
                                    const kernels::KernelTable& table);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_SHARD_PLAN_H_
