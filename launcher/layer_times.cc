#include "launcher/layer_times.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/cpu/machine_limits.h"
#include "kernels/cpu/thread_pool.h"
#include "runtime/base/status_macros.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/comm/thread_communicator.h"
#include "runtime/model/activations.h"
#include "runtime/model/batch.h"
#include "runtime/model/stage.h"
#include "runtime/weights/load_shard.h"
#include "runtime/weights/shard_plan.h"
#include "topology/partition_model.h"

namespace trireme::launcher {
namespace {

constexpr int64_t kChunk = 128;           // tokens of a prefill run
constexpr int64_t kContext = 256;         // positions; decode runs stand behind the chunk
constexpr int64_t kBytesMax = 512 << 20;  // of the layers that are loaded, all ranks together
constexpr int kDecodeRunsMax = 41;
constexpr int kPrefillRunsMax = 5;
constexpr absl::Duration kPhaseLimit = absl::Seconds(1);  // on a busy machine fewer runs must do
constexpr int64_t kBlocks = kContext / kernels::kBlockTokens;

// What one run in four reaches: on a busy machine neighbours disturb most of them.
double TypicalBest(std::vector<double> seconds) {
  const auto quarter = static_cast<int64_t>(seconds.size() / 4);
  std::nth_element(seconds.begin(), seconds.begin() + quarter, seconds.end());
  return seconds[quarter];
}

// A run of tokens of one sequence, with everything that a batch points to.
struct Run {
  Run(int64_t first, int64_t rows) : token_ids(rows), positions(rows), slots(rows), table(kBlocks) {
    std::iota(table.begin(), table.end(), 0);
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(first));
    std::iota(slots.begin(), slots.end(), first);
    logit_rows = {static_cast<int32_t>(rows - 1)};
    sequence = {.first_row = 0, .rows = rows, .first_position = first, .block_table = table.data()};
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  model::Batch batch() const {
    return {.token_ids = token_ids,
            .positions = positions,
            .slots = slots,
            .sequences = {&sequence, 1},
            .logit_rows = logit_rows};
  }

  std::vector<int32_t> token_ids;
  std::vector<int32_t> positions;
  std::vector<int64_t> slots;
  std::vector<int32_t> table;
  std::vector<int32_t> logit_rows;
  kernels::AttentionSequence sequence;
};

// How often all ranks of a group run one thing. The first one decides: each run has collectives, so
// when it says after run n that n + 1 is the last, the others hear it before they could begin n
// + 2.
class RunCount {
 public:
  explicit RunCount(int runs_max) : last_(runs_max - 1) {}

  bool Wants(int run) const { return run <= last_.load(); }

  // Of the first rank, after each run.
  void Done(int run, absl::Time begin) {
    if (absl::Now() - begin > kPhaseLimit) {
      last_ = std::min(last_.load(), run + 1);
    }
  }

 private:
  std::atomic<int> last_;
};

struct RunCounts {
  RunCount prefill{kPrefillRunsMax};
  RunCount decode{kDecodeRunsMax};
};

// The last layers of the model on one tensor rank, and the output matrix.
class MeasuredRank {
 public:
  MeasuredRank(const weights::Checkpoint& checkpoint, const LayerTimesQuestion& question,
               topology::RankPart part, comm::Communicator* group, RunCounts* counts)
      : checkpoint_(checkpoint),
        question_(question),
        part_(std::move(part)),
        group_(*group),
        counts_(*counts) {}

  absl::Status Load(const kernels::KernelTable& table) {
    const spec::ModelSpec& model = checkpoint_.model_spec();
    ASSIGN_OR_RETURN(const weights::ShardPlan plan, weights::PlanShard(checkpoint_, part_, table));
    ASSIGN_OR_RETURN(shard_,
                     weights::LoadShard(checkpoint_, plan, table, {.threads = question_.threads}));
    ASSIGN_OR_RETURN(cache::KvCache kv_cache,
                     cache::KvCache::Create({.format = question_.kv_format,
                                             .layers = part_.layers.size(),
                                             .key_value_heads = part_.key_value_heads.size(),
                                             .head_dim = model.layers[0].attention.head_dim,
                                             .blocks = kBlocks}));
    kv_cache_ = std::make_unique<cache::KvCache>(std::move(kv_cache));
    ASSIGN_OR_RETURN(model::Activations activations,
                     model::Activations::Create(model, part_, table,
                                                {.tokens = kChunk,
                                                 .logit_rows = 1,
                                                 .context = kContext,
                                                 .threads = question_.threads}));
    activations_ = std::make_unique<model::Activations>(std::move(activations));
    pool_ = std::make_unique<kernels::cpu::ThreadPool>(question_.threads);
    context_ = {.table = &table,
                .execution = {.pool = pool_.get(),
                              .worker_scratch = activations_->worker_scratch,
                              .shared_scratch = activations_->shared_scratch,
                              .shared_scratch_bytes = activations_->shared_scratch_bytes},
                .tensor_group = &group_,
                .activations = activations_.get(),
                .mode = question_.activations};
    stage_ = std::make_unique<model::Stage>(model, shard_, *kv_cache_, context_);
    return absl::OkStatus();
  }

  // All ranks of the group run the same. Valid on every rank; they differ by what one waits.
  absl::StatusOr<LayerTimes> Measure() {
    const auto layers = static_cast<double>(part_.layers.size());
    LayerTimes times;
    std::vector<double> layer_seconds;
    std::vector<double> output_seconds;
    const Run chunk(0, kChunk);
    absl::Time phase_begin = absl::Now();
    for (int run = 0; counts_.prefill.Wants(run); ++run) {
      ASSIGN_OR_RETURN(const double seconds, RunLayers(chunk));
      layer_seconds.push_back(seconds / layers / static_cast<double>(kChunk));
      if (part_.tensor_rank == 0) {
        counts_.prefill.Done(run, phase_begin);
      }
    }
    times.prefill_layer = TypicalBest(std::move(layer_seconds));
    layer_seconds.clear();
    const Run token(kChunk, 1);
    phase_begin = absl::Now();
    for (int run = 0; counts_.decode.Wants(run); ++run) {
      ASSIGN_OR_RETURN(const double seconds, RunLayers(token));
      layer_seconds.push_back(seconds / layers);
      const absl::Time begin = absl::Now();
      RETURN_IF_ERROR(stage_->Logits(token.batch()).status());
      output_seconds.push_back(absl::ToDoubleSeconds(absl::Now() - begin));
      if (part_.tensor_rank == 0) {
        counts_.decode.Done(run, phase_begin);
      }
    }
    times.decode_layer = TypicalBest(std::move(layer_seconds));
    times.output = TypicalBest(std::move(output_seconds));
    return times;
  }

 private:
  absl::StatusOr<double> RunLayers(const Run& run) {
    // Ordinary numbers in, as if another stage had sent them.
    const absl::Span<float> residual = stage_->Residual(run.batch());
    for (size_t i = 0; i < residual.size(); ++i) {
      residual[i] = static_cast<float>(static_cast<int>(i % 17) - 8) / 8;
    }
    const absl::Time begin = absl::Now();
    RETURN_IF_ERROR(stage_->RunLayers(run.batch()));
    return absl::ToDoubleSeconds(absl::Now() - begin);
  }

  const weights::Checkpoint& checkpoint_;
  const LayerTimesQuestion question_;
  const topology::RankPart part_;
  comm::Communicator& group_;
  RunCounts& counts_;
  weights::Shard shard_;
  std::unique_ptr<cache::KvCache> kv_cache_;
  std::unique_ptr<model::Activations> activations_;
  std::unique_ptr<kernels::cpu::ThreadPool> pool_;
  model::Context context_;
  std::unique_ptr<model::Stage> stage_;
};

// How many of the model's last layers to load: all of a small one.
absl::StatusOr<int64_t> MeasuredLayers(const weights::Checkpoint& checkpoint) {
  const topology::ModelExtents extents = checkpoint.model_spec().Extents();
  ASSIGN_OR_RETURN(const topology::Partition whole, topology::PartitionModel(extents, {}));
  ASSIGN_OR_RETURN(const weights::ShardPlan plan,
                   weights::PlanShard(checkpoint, whole.parts[0], *kernels::FindKernelTable("")));
  const int64_t layer_bytes = std::max<int64_t>(1, plan.arena_bytes / extents.layers);
  return std::clamp<int64_t>(kBytesMax / layer_bytes, 1, extents.layers);
}

absl::StatusOr<std::vector<topology::RankPart>> PartsToMeasure(
    const weights::Checkpoint& checkpoint, int tensor_ranks) {
  const topology::ModelExtents extents = checkpoint.model_spec().Extents();
  ASSIGN_OR_RETURN(const int64_t measured, MeasuredLayers(checkpoint));
  topology::Layout layout = {.tensor_ranks = tensor_ranks};
  if (measured < extents.layers) {
    layout.stages = 2;
    layout.stage_layers = {extents.layers - measured, measured};
  }
  ASSIGN_OR_RETURN(const topology::Partition partition, topology::PartitionModel(extents, layout));
  return std::vector<topology::RankPart>(partition.parts.end() - tensor_ranks,
                                         partition.parts.end());
}

}  // namespace

absl::StatusOr<LayerTimes> MeasureLayerTimes(const weights::Checkpoint& checkpoint,
                                             const LayerTimesQuestion& question) {
  ASSIGN_OR_RETURN(const std::vector<topology::RankPart> parts,
                   PartsToMeasure(checkpoint, question.tensor_ranks));
  ASSIGN_OR_RETURN(auto groups, comm::MakeThreadCommunicators(question.tensor_ranks));
  const kernels::KernelTable& table = *kernels::FindKernelTable("");
  RunCounts counts;
  std::vector<std::unique_ptr<MeasuredRank>> ranks;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    ranks.push_back(std::make_unique<MeasuredRank>(checkpoint, question, parts[rank],
                                                   groups[rank].get(), &counts));
    RETURN_IF_ERROR(ranks.back()->Load(table));
  }
  std::vector<absl::StatusOr<LayerTimes>> times(ranks.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back([&ranks, &times, rank] { times[rank] = ranks[rank]->Measure(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const absl::StatusOr<LayerTimes>& of_rank : times) {
    RETURN_IF_ERROR(of_rank.status());
  }
  ranks.clear();
  LayerTimes result = *times[0];
  result.stream_bytes_per_second =
      kernels::cpu::MeasureMachineLimits(question.tensor_ranks * question.threads)
          .stream_bytes_per_second;
  return result;
}

}  // namespace trireme::launcher
