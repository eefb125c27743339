#include "runtime/weights/load_shard.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/kernel_table.h"
#include "runtime/base/check.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/buffer.h"
#include "runtime/spec/tensor_roles.h"
#include "runtime/weights/quantized/storage_blocks.h"

namespace trireme::weights {
namespace {

struct Task {
  const PlannedTensor* tensor;
  const PlannedSlice* slice;
};

// Slices to pack, the largest first, each place of the arena once (a tied output shares the
// embedding's).
std::vector<Task> TasksOf(const ShardPlan& plan) {
  std::vector<Task> tasks;
  for (const PlannedTensor& tensor : plan.tensors) {
    const bool is_shared = tensor.role == spec::Role::kOutput &&
                           plan.tensors[0].role == spec::Role::kEmbedding &&
                           !tensor.slices.empty() && !plan.tensors[0].slices.empty() &&
                           tensor.slices[0].arena_offset == plan.tensors[0].slices[0].arena_offset;
    for (const PlannedSlice& slice : tensor.slices) {
      if (!is_shared) {
        tasks.push_back({&tensor, &slice});
      }
    }
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) {
    return a.slice->arena_bytes > b.slice->arena_bytes;
  });
  return tasks;
}

// Of the storage block that holds the slice's first column.
int64_t FirstStoredColumn(const kernels::SliceShape& shape) {
  const int64_t values = kernels::InfoOf(shape.format).storage_values;
  return shape.first_column / values * values;
}

// Rows of a slice one after another, as the packer wants them.
struct GatheredRows {
  std::vector<std::byte> bytes;
  int64_t row_bytes = 0;
};

// Elements of float formats are moved as they are, the others are decoded.
absl::StatusOr<GatheredRows> GatherRows(const PlannedTensor& tensor, const PlannedSlice& slice) {
  const StoredTensor& stored = tensor.stored;
  const kernels::SliceShape& shape = slice.shape;
  const kernels::WeightFormatInfo& info = kernels::InfoOf(stored.format);
  const bool moves = !slice.is_decoded && info.storage_values == 1 && stored.quantized == nullptr;
  const int64_t element_bytes = moves ? info.storage_bytes : static_cast<int64_t>(sizeof(float));
  GatheredRows gathered;
  gathered.row_bytes = shape.columns * element_bytes;
  gathered.bytes.resize(static_cast<size_t>(shape.rows * gathered.row_bytes));
  std::vector<float> decoded(moves ? 0 : static_cast<size_t>(stored.columns));
  const auto element_of = [&](const std::byte* row, int64_t column) {
    return moves ? row + column * element_bytes
                 : reinterpret_cast<const std::byte*>(decoded.data() + column);
  };
  const int64_t runs = tensor.is_transposed ? shape.columns : shape.rows;
  for (int64_t i = 0; i < runs; ++i) {
    const int64_t stored_row =
        tensor.first_row +
        (tensor.is_transposed ? shape.first_column + i : (slice.first_row + i) * tensor.row_step);
    const std::byte* const row = moves ? stored.data + stored_row * stored.row_bytes : nullptr;
    if (!moves) {
      RETURN_IF_ERROR(stored.Decode(stored_row, {0, stored.columns}, decoded.data()));
    }
    for (int64_t k = 0; tensor.is_transposed && k < shape.rows; ++k) {
      const int64_t column = tensor.first_column + (slice.first_row + k) * tensor.row_step;
      std::memcpy(gathered.bytes.data() + k * gathered.row_bytes + i * element_bytes,
                  element_of(row, column), static_cast<size_t>(element_bytes));
    }
    if (!tensor.is_transposed) {
      std::memcpy(gathered.bytes.data() + i * gathered.row_bytes,
                  element_of(row, shape.first_column), static_cast<size_t>(gathered.row_bytes));
    }
  }
  return gathered;
}

// Rows of a quantised checkpoint's matrix as storage blocks of the slice's format, from the block
// on in which the slice begins.
absl::StatusOr<GatheredRows> StoreRows(const PlannedTensor& tensor, const PlannedSlice& slice) {
  const kernels::SliceShape& shape = slice.shape;
  const QuantizedMatrix& matrix = *tensor.stored.quantized;
  const topology::Range columns = {FirstStoredColumn(shape), shape.first_column + shape.columns};
  GatheredRows rows;
  rows.row_bytes = BlockBytes(shape.format, columns.size());
  rows.bytes.resize(static_cast<size_t>(shape.rows * rows.row_bytes));
  const int64_t first_row = tensor.first_row + slice.first_row * tensor.row_step;
  if (tensor.row_step == 1) {
    RETURN_IF_ERROR(matrix.Store(shape.format, {first_row, first_row + shape.rows}, columns,
                                 rows.bytes.data()));
    return rows;
  }
  for (int64_t i = 0; i < shape.rows; ++i) {
    const int64_t row = first_row + i * tensor.row_step;
    RETURN_IF_ERROR(matrix.Store(shape.format, {row, row + 1}, columns,
                                 rows.bytes.data() + i * rows.row_bytes));
  }
  return rows;
}

absl::Status PackSlice(const PlannedTensor& tensor, const PlannedSlice& slice,
                       const kernels::KernelTable& table, std::byte* arena) {
  const StoredTensor& stored = tensor.stored;
  kernels::PackArgs args{.shape = slice.shape, .packed = arena + slice.arena_offset};
  const bool is_quantized = stored.quantized != nullptr;
  if (!is_quantized && !slice.is_decoded && !tensor.is_transposed) {
    args.source =
        stored.data + (tensor.first_row + slice.first_row * tensor.row_step) * stored.row_bytes;
    args.source_row_bytes = tensor.row_step * stored.row_bytes;
    table.pack(args);
    return absl::OkStatus();
  }
  const bool has_blocks = is_quantized && !tensor.is_transposed;
  ASSIGN_OR_RETURN(const GatheredRows rows,
                   has_blocks ? StoreRows(tensor, slice) : GatherRows(tensor, slice));
  args.shape.first_column =
      has_blocks ? slice.shape.first_column - FirstStoredColumn(slice.shape) : 0;
  args.source = rows.bytes.data();
  args.source_row_bytes = rows.row_bytes;
  table.pack(args);
  return absl::OkStatus();
}

absl::Status FillVector(const PlannedTensor& tensor, const PlannedSlice& slice, std::byte* arena) {
  const StoredTensor& stored = tensor.stored;
  std::vector<float> values(static_cast<size_t>(stored.columns));
  RETURN_IF_ERROR(stored.Decode(tensor.first_row, {0, stored.columns}, values.data()));
  float* const target = reinterpret_cast<float*>(arena + slice.arena_offset);
  for (int64_t i = 0; i < slice.shape.rows; ++i) {
    target[i] =
        values[static_cast<size_t>(tensor.first_column + (slice.first_row + i) * tensor.row_step)] +
        tensor.value_offset;
  }
  return absl::OkStatus();
}

// The first error of several threads.
class FirstError {
 public:
  void Update(absl::Status status) {
    MutexLock lock(&mutex_);
    if (status_.ok()) {
      status_ = std::move(status);
    }
  }
  absl::Status status() {
    MutexLock lock(&mutex_);
    return status_;
  }

 private:
  Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

class ProgressCounter {
 public:
  ProgressCounter(int64_t total_bytes, const LoadProgress& progress)
      : total_bytes_(total_bytes), progress_(progress) {}

  void Add(int64_t bytes) {
    MutexLock lock(&mutex_);
    done_bytes_ += bytes;
    if (progress_) {
      progress_(done_bytes_, total_bytes_);
    }
  }

 private:
  const int64_t total_bytes_;
  const LoadProgress& progress_;
  Mutex mutex_;
  int64_t done_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

bool IsCutByColumns(spec::SplitRule split) {
  return split == spec::SplitRule::kQueryHeadColumns || split == spec::SplitRule::kHiddenColumns ||
         split == spec::SplitRule::kExpertColumns || split == spec::SplitRule::kSharedColumns;
}

PackedMatrix MatrixOf(const PlannedTensor& tensor, int64_t model_dim, const std::byte* arena) {
  PackedMatrix matrix;
  matrix.is_quantized = true;
  for (const PlannedSlice& slice : tensor.slices) {
    matrix.slices.push_back(
        {.shape = slice.shape, .leaf_index = slice.leaf_index, .data = arena + slice.arena_offset});
    matrix.rows = slice.shape.rows;
    matrix.columns += slice.shape.columns;
    matrix.is_quantized = matrix.is_quantized && kernels::InfoOf(slice.shape.format).is_quantized;
  }
  if (tensor.slices.empty() && IsCutByColumns(spec::RoleOf(tensor.role).split)) {
    // Partial sums of nothing: every row is the neutral element. Such matrices have all rows of the
    // model's width.
    matrix.rows = model_dim;
  }
  return matrix;
}

// Puts a tensor where the forward pass looks for it.
void Place(const PlannedTensor& tensor, int64_t model_dim, Shard* shard) {
  const std::byte* const arena = shard->arena.data();
  LayerWeights& weights =
      tensor.layer < 0 ? shard->ends : shard->layers[tensor.layer - shard->part.layers.begin];
  if (tensor.is_vector) {
    weights.Add(tensor.role, tensor.slices.empty() ? nullptr
                                                   : reinterpret_cast<const float*>(
                                                         arena + tensor.slices[0].arena_offset));
  } else {
    weights.Add(tensor.role, MatrixOf(tensor, model_dim, arena));
  }
}

}  // namespace

absl::StatusOr<Shard> LoadShard(const Checkpoint& checkpoint, const ShardPlan& plan,
                                const kernels::KernelTable& table, int threads,
                                const LoadProgress& progress) {
  Shard shard;
  shard.part = plan.part;
  shard.layers.resize(plan.part.layers.size());
  ASSIGN_OR_RETURN(shard.arena, device::DeviceBuffer::Create(
                                    plan.arena_bytes,
                                    absl::StrFormat("the weights of rank %d", plan.part.rank)));
  const std::vector<Task> tasks = TasksOf(plan);
  int64_t total_bytes = 0;
  for (const Task& task : tasks) {
    total_bytes += task.slice->arena_bytes;
  }
  ProgressCounter counter(total_bytes, progress);
  FirstError error;
  kernels::cpu::ThreadPool pool(threads);
  pool.ParallelFor(
      static_cast<int64_t>(tasks.size()), [&](int64_t task_index, int /*worker_index*/) {
        const Task& task = tasks[task_index];
        std::byte* const arena = shard.arena.data();
        error.Update(task.tensor->is_vector ? FillVector(*task.tensor, *task.slice, arena)
                                            : PackSlice(*task.tensor, *task.slice, table, arena));
        counter.Add(task.slice->arena_bytes);
      });
  RETURN_IF_ERROR(checkpoint.CheckUnchanged());
  if (const absl::Status status = error.status(); !status.ok()) {
    return absl::DataLossError(status.message());  // the file is at fault, not an argument
  }
  for (const PlannedTensor& tensor : plan.tensors) {
    Place(tensor, checkpoint.model_spec().model_dim, &shard);
  }
  return shard;
}

}  // namespace trireme::weights
