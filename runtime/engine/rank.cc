#include "runtime/engine/rank.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/kernel_table.h"
#include "runtime/base/status_macros.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/engine/worker.h"
#include "runtime/model/activations.h"
#include "runtime/model/stage.h"
#include "runtime/weights/load_shard.h"
#include "runtime/weights/shard_plan.h"
#include "runtime/weights/token_work.h"
#include "topology/partition_model.h"

namespace trireme::engine {
namespace {

constexpr int64_t kDefaultPositions = 32768;  // of KV, where the context is shorter

absl::StatusOr<const kernels::KernelTable*> FindTable(const std::string& name) {
  const kernels::KernelTable* const table = kernels::FindKernelTable(name.c_str());
  if (table != nullptr) {
    return table;
  }
  std::string known;
  const kernels::KernelTableList list = kernels::RunnableKernelTables();
  for (int i = 0; i < list.count; ++i) {
    absl::StrAppend(&known, i == 0 ? "" : ", ", list.tables[i]->name);
  }
  return absl::NotFoundError(
      absl::StrFormat("kernel table \"%s\": this machine can run %s", name, known));
}

}  // namespace

struct Rank::State {
  RankOptions options;
  spec::ModelSpec model;
  const kernels::KernelTable* table = nullptr;
  weights::ShardPlan plan;
  cache::KvCacheShape kv_shape;
  model::ActivationLimits activation_limits;
  // Filled by Load.
  weights::Shard shard;
  std::unique_ptr<cache::KvCache> kv_cache;
  std::unique_ptr<model::Activations> activations;
  std::unique_ptr<kernels::cpu::ThreadPool> pool;
  WorkerProgress progress;
  std::unique_ptr<model::ExpertLoad> expert_load;
};

absl::StatusOr<StepLimits> ResolveLimits(StepLimits limits, const spec::ModelSpec& model) {
  if (limits.context == 0) {
    limits.context = static_cast<int32_t>(model.context);
  }
  if (limits.context < 1 || limits.context > model.context) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a context of %d positions: the model was made for 1 to %d", limits.context,
                        model.context));
  }
  if (limits.blocks == 0) {
    const int64_t positions = std::max<int64_t>(limits.context, kDefaultPositions);
    limits.blocks =
        static_cast<int32_t>((positions + kernels::kBlockTokens - 1) / kernels::kBlockTokens);
  }
  if (limits.tokens < 1 || limits.sequences < 1 || limits.logit_rows < 1 || limits.blocks < 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "step limits must be at least 1: tokens %d, sequences %d, logit rows %d, KV blocks %d",
        limits.tokens, limits.sequences, limits.logit_rows, limits.blocks));
  }
  return limits;
}

Rank::Rank(std::unique_ptr<State> state) : state_(std::move(state)) {}
Rank::~Rank() = default;

absl::StatusOr<std::unique_ptr<Rank>> Rank::Plan(const RankOptions& options,
                                                 const weights::Checkpoint& checkpoint, int rank) {
  auto state = std::make_unique<State>();
  state->options = options;
  state->model = checkpoint.model_spec().ForContext(options.limits.context);
  state->expert_load = std::make_unique<model::ExpertLoad>(state->model);
  ASSIGN_OR_RETURN(state->table, FindTable(options.kernels));
  ASSIGN_OR_RETURN(const topology::Partition partition,
                   topology::PartitionModel(state->model.Extents(), options.layout));
  absl::StatusOr<weights::ShardPlan> plan =
      weights::PlanShard(checkpoint, partition.parts[rank], *state->table);
  if (!plan.ok()) {
    return absl::DataLossError(plan.status().message());  // the file is at fault, not the options
  }
  state->plan = *std::move(plan);
  const topology::RankPart& part = state->plan.part;
  state->kv_shape = {.format = options.kv_format,
                     .layers = part.layers.size(),
                     .key_value_heads = part.key_value_heads.size(),
                     .head_dim = state->model.layers[0].attention.head_dim,
                     .blocks = options.limits.blocks};
  state->activation_limits = {
      .tokens = options.limits.tokens,
      .logit_rows = std::min(options.limits.logit_rows, options.limits.tokens),
      .context = options.limits.context,
      .threads = options.threads};
  return std::unique_ptr<Rank>(new Rank(std::move(state)));
}

const topology::RankPart& Rank::part() const { return state_->plan.part; }

const kernels::KernelTable& Rank::table() const { return *state_->table; }

RankBytes Rank::bytes() const {
  return {.weights = state_->plan.arena_bytes,
          .kv_cache = cache::KvCacheBytes(state_->kv_shape),
          .workspace = model::Activations::Bytes(state_->model, part(), *state_->table,
                                                 state_->activation_limits),
          .read = state_->plan.source_bytes};
}

RankWork Rank::work() const {
  RankWork work = {.decode_bytes = weights::DecodeWork(state_->plan, state_->model).bytes};
  const weights::TokenWork layers = weights::LayerWork(state_->plan, state_->model);
  if (state_->options.activations == model::ActivationMode::kFloat32) {
    work.prefill_products[static_cast<size_t>(kernels::ActivationKind::kFloat32)] =
        layers.AllProducts();
  } else {
    work.prefill_products = layers.products;
  }
  return work;
}

absl::Status Rank::Load(const weights::Checkpoint& checkpoint,
                        const weights::LoadProgress& progress) {
  ASSIGN_OR_RETURN(state_->shard, weights::LoadShard(checkpoint, state_->plan, *state_->table,
                                                     {.threads = state_->options.threads,
                                                      .bad_weights = state_->options.bad_weights,
                                                      .progress = progress}));
  ASSIGN_OR_RETURN(cache::KvCache kv_cache, cache::KvCache::Create(state_->kv_shape));
  state_->kv_cache = std::make_unique<cache::KvCache>(std::move(kv_cache));
  ASSIGN_OR_RETURN(
      model::Activations activations,
      model::Activations::Create(state_->model, part(), *state_->table, state_->activation_limits));
  state_->activations = std::make_unique<model::Activations>(std::move(activations));
  state_->pool = std::make_unique<kernels::cpu::ThreadPool>(state_->options.threads);
  return absl::OkStatus();
}

absl::Status Rank::Run(const RankLinks& links) {
  const model::Activations& arrays = *state_->activations;
  const model::Context context{.table = state_->table,
                               .execution = {.pool = state_->pool.get(),
                                             .worker_scratch = arrays.worker_scratch,
                                             .shared_scratch = arrays.shared_scratch,
                                             .shared_scratch_bytes = arrays.shared_scratch_bytes},
                               .tensor_group = links.tensor,
                               .activations = state_->activations.get(),
                               .expert_load = state_->expert_load.get(),
                               .mode = state_->options.activations};
  model::Stage stage(state_->model, state_->shard, *state_->kv_cache, context);
  return Worker({.part = part(),
                 .limits = state_->options.limits,
                 .vocabulary = state_->model.vocabulary,
                 .progress = &state_->progress},
                &stage, links)
      .Run();
}

const WorkerProgress& Rank::progress() const { return state_->progress; }

const model::ExpertLoad& Rank::expert_load() const { return *state_->expert_load; }

}  // namespace trireme::engine
