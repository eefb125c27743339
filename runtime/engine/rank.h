// One rank of a replica, whole: its shard, KV cache, workspace, forward pass and loop. The same
// code serves a rank that is a thread of this process and one that is a process under mpirun; what
// differs is handed in (RankLinks).
#ifndef TRIREME_RUNTIME_ENGINE_RANK_H_
#define TRIREME_RUNTIME_ENGINE_RANK_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/formats/weight_format.h"
#include "kernels/kernel_table.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/comm/communicator.h"
#include "runtime/engine/pipeline.h"
#include "runtime/engine/step.h"
#include "runtime/engine/worker.h"
#include "runtime/model/context.h"
#include "runtime/model/expert_load.h"
#include "runtime/weights/checkpoint.h"
#include "runtime/weights/load_shard.h"
#include "topology/partition.h"

namespace trireme::engine {

// What all ranks of a replica agree on.
struct RankOptions {
  topology::Layout layout;
  StepLimits limits;  // complete: context and blocks above 0
  kernels::KeyValueFormat kv_format = kernels::KeyValueFormat::kF16;
  model::ActivationMode activations = model::ActivationMode::kAuto;
  std::string kernels;  // name of a table; empty: the best one of this machine
  weights::BadWeights bad_weights = weights::BadWeights::kWarn;
  int threads = 1;  // of each rank
};

// Exact bytes of one rank, known before anything is loaded.
struct RankBytes {
  int64_t weights = 0;
  int64_t kv_cache = 0;
  int64_t workspace = 0;
  int64_t read = 0;  // from the model's files when it loads; not held

  int64_t total() const { return weights + kv_cache + workspace; }
};

// What one token costs one rank, by the plan of its weights (weights/token_work.h).
struct RankWork {
  int64_t decode_bytes = 0;  // weights that a decoded token reads
  // Of a prompt's token, in the layers, by the kernels::ActivationKind that they run with.
  std::array<int64_t, kernels::kActivationKindCount> prefill_products = {};
};

// Fills in what the caller left open (context 0: the model's; blocks 0: room for the context or
// 32768 positions, whichever is more). InvalidArgument, naming the numbers, when the limits cannot
// work for this model.
absl::StatusOr<StepLimits> ResolveLimits(StepLimits limits, const spec::ModelSpec& model);

class Rank {
 public:
  // Plans without loading: NotFound for an unknown kernel table, the errors of PartitionModel and
  // PlanShard.
  static absl::StatusOr<std::unique_ptr<Rank>> Plan(const RankOptions& options,
                                                    const weights::Checkpoint& checkpoint,
                                                    int rank);
  ~Rank();

  const topology::RankPart& part() const;
  const kernels::KernelTable& table() const;
  RankBytes bytes() const;
  RankWork work() const;

  // Takes memory and reads the weights. The checkpoint may be closed afterwards.
  absl::Status Load(const weights::Checkpoint& checkpoint, const weights::LoadProgress& progress);

  // After Load: the loop (worker.h), until a plan says shutdown or something fails.
  absl::Status Run(const RankLinks& links);

  // Any thread, any time.
  const WorkerProgress& progress() const;
  const model::ExpertLoad& expert_load() const;

 private:
  struct State;
  explicit Rank(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_RANK_H_
