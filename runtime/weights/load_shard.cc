#include "runtime/weights/load_shard.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/kernel_table.h"
#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/buffer.h"
#include "runtime/spec/tensor_roles.h"
#include "runtime/weights/finite_scan.h"
#include "runtime/weights/slice_rows.h"

namespace trireme::weights {
namespace {

// A run of rows of a slice, or a whole vector.
struct Task {
  const PlannedTensor* tensor;
  const PlannedSlice* slice;
  topology::Range rows;
  int64_t packed_offset = 0;  // in the slice's place in the arena
  int64_t packed_bytes = 0;
};

// Slices to pack, the largest first, each place of the arena once (a tied output shares the
// embedding's).
std::vector<Task> SlicesOf(const ShardPlan& plan) {
  std::vector<Task> slices;
  for (const PlannedTensor& tensor : plan.tensors) {
    const bool is_shared = tensor.role == spec::Role::kOutput &&
                           plan.tensors[0].role == spec::Role::kEmbedding &&
                           !tensor.slices.empty() && !plan.tensors[0].slices.empty() &&
                           tensor.slices[0].arena_offset == plan.tensors[0].slices[0].arena_offset;
    for (const PlannedSlice& slice : tensor.slices) {
      if (!is_shared) {
        slices.push_back({.tensor = &tensor,
                          .slice = &slice,
                          .rows = {0, slice.shape.rows},
                          .packed_bytes = slice.arena_bytes});
      }
    }
  }
  std::stable_sort(slices.begin(), slices.end(),
                   [](const Task& a, const Task& b) { return a.packed_bytes > b.packed_bytes; });
  return slices;
}

// Matrices cut into runs: what a thread gathers stays small, whatever the tensor, and several
// threads share the largest ones.
std::vector<Task> TasksOf(const ShardPlan& plan, const kernels::KernelTable& table) {
  std::vector<Task> tasks;
  for (const Task& whole : SlicesOf(plan)) {
    if (whole.tensor->is_vector) {
      tasks.push_back(whole);
      continue;
    }
    kernels::SliceShape head = whole.slice->shape;  // the rows before the run
    const int64_t run_rows = RowsOfRun(*whole.tensor, *whole.slice);
    Task task = whole;
    while (task.rows.begin < whole.rows.end) {
      task.rows.end = std::min(whole.rows.end, task.rows.begin + run_rows);
      head.rows = task.rows.end;
      const int64_t packed_end =
          task.rows.end == whole.rows.end ? whole.packed_bytes : table.packed_bytes(head);
      task.packed_bytes = packed_end - task.packed_offset;
      tasks.push_back(task);
      task.rows.begin = task.rows.end;
      task.packed_offset = packed_end;
    }
  }
  return tasks;
}

// The first bad value of each tensor that has one, of several threads.
class BadTensors {
 public:
  void Add(const PlannedTensor& tensor, StoredPlace place, float value) {
    MutexLock lock(&mutex_);
    const auto [found, is_new] = places_.try_emplace(tensor.stored.name, place, value);
    if (!is_new && std::pair(place.row, place.column) <
                       std::pair(found->second.first.row, found->second.first.column)) {
      found->second = {place, value};
    }
  }

  // "blk.0.ffn_up.weight (nan at row 3, column 5), ..." by name; empty when there are none.
  std::string Names() {
    constexpr size_t kNamed = 20;
    MutexLock lock(&mutex_);
    std::string names;
    size_t named = 0;
    for (const auto& [name, first] : places_) {
      if (named++ == kNamed) {
        absl::StrAppend(&names, " and ", places_.size() - kNamed, " more tensors");
        break;
      }
      absl::StrAppendFormat(&names, "%s%s (%f at row %d, column %d)", named == 1 ? "" : ", ", name,
                            first.second, first.first.row, first.first.column);
    }
    return names;
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::pair<StoredPlace, float>> places_ ABSL_GUARDED_BY(mutex_);
};

absl::Status PackRows(const Task& task, const kernels::KernelTable& table, RowBuffer* buffer,
                      std::byte* arena, BadTensors* bad_tensors) {
  ASSIGN_OR_RETURN(kernels::PackArgs args, SliceRows(*task.tensor, *task.slice, task.rows, buffer));
  if (const std::optional<BadValue> bad = FindBadValue(args)) {
    bad_tensors->Add(*task.tensor,
                     PlaceOf(*task.tensor, *task.slice, task.rows.begin + bad->row, bad->column),
                     bad->value);
  }
  args.packed = arena + task.slice->arena_offset + task.packed_offset;
  table.pack(args);
  return absl::OkStatus();
}

absl::Status FillVector(const PlannedTensor& tensor, const PlannedSlice& slice, std::byte* arena,
                        BadTensors* bad_tensors) {
  const StoredTensor& stored = tensor.stored;
  std::vector<float> values(static_cast<size_t>(stored.columns));
  RETURN_IF_ERROR(stored.Decode(tensor.first_row, {0, stored.columns}, values.data()));
  float* const target = reinterpret_cast<float*>(arena + slice.arena_offset);
  for (int64_t i = 0; i < slice.shape.rows; ++i) {
    const int64_t column = PlaceOf(tensor, slice, i, 0).column;
    target[i] = values[static_cast<size_t>(column)] + tensor.value_offset;
  }
  if (const std::optional<BadValue> bad =
          FindBadValue(absl::MakeConstSpan(target, static_cast<size_t>(slice.shape.rows)))) {
    bad_tensors->Add(tensor, PlaceOf(tensor, slice, bad->column, 0), bad->value);
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
  for (const PlannedSlice& slice : tensor.slices) {
    matrix.slices.push_back(
        {.shape = slice.shape, .leaf_index = slice.leaf_index, .data = arena + slice.arena_offset});
    matrix.rows = slice.shape.rows;
    matrix.columns += slice.shape.columns;
    matrix.activations = kernels::ActivationKindOf(kernels::InfoOf(slice.shape.format));
  }
  if (tensor.slices.empty() && IsCutByColumns(spec::RoleOf(tensor.role).split)) {
    // Partial sums of nothing: every row is the neutral element. Such matrices have all rows of the
    // model's width.
    matrix.rows = model_dim;
  }
  return matrix;
}

absl::Status JudgeBadTensors(const Checkpoint& checkpoint, const ShardPlan& plan,
                             BadWeights bad_weights, const std::string& names) {
  if (names.empty()) {
    return absl::OkStatus();
  }
  const std::string found = absl::StrFormat(
      "%s: of the weights of rank %d some are no finite numbers: %s; the file is damaged, or was "
      "written from a training run that diverged: fetch it again, trireme inspect --verify "
      "compares it with its SHA256SUMS",
      checkpoint.name(), plan.part.rank, names);
  if (bad_weights == BadWeights::kRefuse) {
    return absl::DataLossError(absl::StrCat(found, ". --bad-weights warn loads it all the same"));
  }
  Log(LogLevel::kWarning,
      absl::StrCat(found,
                   ". Requests that meet them end with an error, --bad-weights refuse "
                   "refuses the file"));
  return absl::OkStatus();
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
                                const kernels::KernelTable& table, const LoadOptions& options) {
  Shard shard;
  shard.part = plan.part;
  shard.layers.resize(plan.part.layers.size());
  ASSIGN_OR_RETURN(shard.arena, device::DeviceBuffer::Create(
                                    plan.arena_bytes,
                                    absl::StrFormat("the weights of rank %d", plan.part.rank)));
  const std::vector<Task> tasks = TasksOf(plan, table);
  int64_t total_bytes = 0;
  for (const Task& task : tasks) {
    total_bytes += task.packed_bytes;
  }
  ProgressCounter counter(total_bytes, options.progress);
  FirstError error;
  BadTensors bad_tensors;
  std::vector<RowBuffer> buffers(static_cast<size_t>(options.threads));
  kernels::cpu::ThreadPool pool(options.threads);
  pool.ParallelFor(static_cast<int64_t>(tasks.size()), [&](int64_t task_index, int worker_index) {
    const Task& task = tasks[task_index];
    std::byte* const arena = shard.arena.data();
    error.Update(task.tensor->is_vector
                     ? FillVector(*task.tensor, *task.slice, arena, &bad_tensors)
                     : PackRows(task, table, &buffers[worker_index], arena, &bad_tensors));
    counter.Add(task.packed_bytes);
  });
  RETURN_IF_ERROR(checkpoint.CheckUnchanged());
  if (const absl::Status status = error.status(); !status.ok()) {
    return absl::DataLossError(status.message());  // the file is at fault, not an argument
  }
  RETURN_IF_ERROR(JudgeBadTensors(checkpoint, plan, options.bad_weights, bad_tensors.Names()));
  for (const PlannedTensor& tensor : plan.tensors) {
    Place(tensor, checkpoint.model_spec().model_dim, &shard);
  }
  return shard;
}

}  // namespace trireme::weights
