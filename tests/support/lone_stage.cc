#include "tests/support/lone_stage.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/weights/load_shard.h"
#include "runtime/weights/shard_plan.h"
#include "topology/partition_model.h"

namespace trireme::testing {
namespace {

constexpr int64_t kContext = 512;
constexpr int64_t kBlocks = kContext / kernels::kBlockTokens;

template <typename T>
T ValueOf(absl::StatusOr<T> result) {
  if (!result.ok()) {
    internal::CheckFailed(__FILE__, __LINE__, result.status().ToString());
  }
  return *std::move(result);
}

}  // namespace

LoneStage::LoneStage(const std::string& path, const LoneStageOptions& options)
    : options_(options),
      checkpoint_(ValueOf(weights::Checkpoint::Open(path))),
      table_(options.table != nullptr ? options.table
                                      : kernels::FindKernelTable(options.kernels.c_str())),
      pool_(options.threads),
      alone_(comm::MakeSelfCommunicator()) {
  CHECK(table_ != nullptr);
  const spec::ModelSpec& trained = checkpoint_->model_spec();
  model_ = trained.ForContext(options.context == 0 ? trained.context : options.context);
  const spec::ModelSpec& model = model_;
  const topology::Partition partition = ValueOf(topology::PartitionModel(model.Extents(), {}));
  const topology::RankPart& part = partition.parts[0];
  const weights::ShardPlan plan = ValueOf(weights::PlanShard(*checkpoint_, part, *table_));
  shard_ = ValueOf(weights::LoadShard(*checkpoint_, plan, *table_, {.threads = options.threads}));
  kv_cache_ = std::make_unique<cache::KvCache>(
      ValueOf(cache::KvCache::Create({.format = options.kv_format,
                                      .layers = part.layers.size(),
                                      .key_value_heads = part.key_value_heads.size(),
                                      .head_dim = model.layers[0].attention.head_dim,
                                      .blocks = kBlocks})));
  activations_ = std::make_unique<model::Activations>(
      ValueOf(model::Activations::Create(model, part, *table_,
                                         {.tokens = options.chunk,
                                          .logit_rows = options.chunk,
                                          .context = kContext,
                                          .threads = options.threads})));
  context_ = {.table = table_,
              .execution = {.pool = &pool_,
                            .worker_scratch = activations_->worker_scratch,
                            .shared_scratch = activations_->shared_scratch,
                            .shared_scratch_bytes = activations_->shared_scratch_bytes},
              .tensor_group = alone_.get(),
              .activations = activations_.get(),
              .mode = options.activations};
  stage_ = std::make_unique<model::Stage>(model, shard_, *kv_cache_, context_);
}

std::vector<float> LoneStage::Logits(absl::Span<const int32_t> token_ids) {
  // Blocks in descending order, so that nothing works by accident of neighbouring blocks.
  std::vector<int32_t> block_table(kBlocks);
  std::iota(block_table.rbegin(), block_table.rend(), 0);
  std::vector<float> logits;
  const int64_t count = static_cast<int64_t>(token_ids.size());
  for (int64_t first = 0; first < count; first += options_.chunk) {
    const int64_t rows = std::min(options_.chunk, count - first);
    std::vector<int32_t> positions(rows);
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(first));
    std::vector<int64_t> slots;
    for (const int32_t position : positions) {
      slots.push_back(int64_t{block_table[position / kernels::kBlockTokens]} *
                          kernels::kBlockTokens +
                      position % kernels::kBlockTokens);
    }
    std::vector<int32_t> logit_rows(rows);
    std::iota(logit_rows.begin(), logit_rows.end(), 0);
    const kernels::AttentionSequence sequence = {
        .first_row = 0, .rows = rows, .first_position = first, .block_table = block_table.data()};
    const model::Batch batch = {.token_ids = token_ids.subspan(first, rows),
                                .positions = positions,
                                .slots = slots,
                                .sequences = {&sequence, 1},
                                .logit_rows = logit_rows};
    CHECK(stage_->Embed(batch).ok());
    CHECK(stage_->RunLayers(batch).ok());
    const absl::Span<const float> chunk_logits = ValueOf(stage_->Logits(batch));
    logits.insert(logits.end(), chunk_logits.begin(), chunk_logits.end());
  }
  return logits;
}

}  // namespace trireme::testing
