// Every family cut over tensor ranks and stages, ranks as threads: the bits are those of one rank,
// in float32 and in the default arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/comm/thread_communicator.h"
#include "runtime/model/activations.h"
#include "runtime/model/stage.h"
#include "runtime/weights/checkpoint.h"
#include "runtime/weights/load_shard.h"
#include "runtime/weights/shard_plan.h"
#include "tests/support/family_fixtures.h"
#include "topology/partition_model.h"

namespace trireme::model {
namespace {

constexpr int64_t kContext = 64;
constexpr int64_t kBlocks = kContext / kernels::kBlockTokens;

template <typename T>
T ValueOf(absl::StatusOr<T> result) {
  if (!result.ok()) {
    internal::CheckFailed(__FILE__, __LINE__, result.status().ToString());
  }
  return *std::move(result);
}

// One rank of a cut model, with the memory for one sequence in one step.
class TestRank {
 public:
  TestRank(const weights::Checkpoint& checkpoint, const topology::RankPart& part,
           ActivationMode mode, std::unique_ptr<comm::Communicator> group)
      : model_(checkpoint.model_spec().ForContext(kContext)),
        part_(part),
        table_(*kernels::FindKernelTable("")),
        pool_(1),
        group_(std::move(group)) {
    const weights::ShardPlan plan = ValueOf(weights::PlanShard(checkpoint, part, table_));
    shard_ = ValueOf(weights::LoadShard(checkpoint, plan, table_, {}));
    kv_cache_ = std::make_unique<cache::KvCache>(
        ValueOf(cache::KvCache::Create({.format = kernels::KeyValueFormat::kF32,
                                        .layers = part.layers.size(),
                                        .key_value_heads = part.key_value_heads.size(),
                                        .head_dim = model_.layers[0].attention.head_dim,
                                        .blocks = kBlocks})));
    activations_ = std::make_unique<Activations>(ValueOf(Activations::Create(
        model_, part, table_,
        {.tokens = kContext, .logit_rows = kContext, .context = kContext, .threads = 1})));
    context_ = {.table = &table_,
                .execution = {.pool = &pool_,
                              .worker_scratch = activations_->worker_scratch,
                              .shared_scratch = activations_->shared_scratch,
                              .shared_scratch_bytes = activations_->shared_scratch_bytes},
                .tensor_group = group_.get(),
                .activations = activations_.get(),
                .mode = mode};
    stage_ = std::make_unique<Stage>(model_, shard_, *kv_cache_, context_);
  }

  // `residual` comes in from the stage before, and goes out changed; logits of the last stage.
  std::vector<float> Run(const Batch& batch, std::vector<float>* residual) {
    if (part_.first_stage) {
      CHECK(stage_->Embed(batch).ok());
    } else {
      std::copy(residual->begin(), residual->end(), stage_->Residual(batch).begin());
    }
    CHECK(stage_->RunLayers(batch).ok());
    const absl::Span<float> out = stage_->Residual(batch);
    residual->assign(out.begin(), out.end());
    if (!part_.last_stage) {
      return {};
    }
    const absl::Span<const float> logits = ValueOf(stage_->Logits(batch));
    return {logits.begin(), logits.end()};
  }

 private:
  const spec::ModelSpec model_;
  const topology::RankPart part_;
  const kernels::KernelTable& table_;
  weights::Shard shard_;
  std::unique_ptr<cache::KvCache> kv_cache_;
  std::unique_ptr<Activations> activations_;
  kernels::cpu::ThreadPool pool_;
  std::unique_ptr<comm::Communicator> group_;
  Context context_;
  std::unique_ptr<Stage> stage_;
};

std::vector<float> LogitsOf(const weights::Checkpoint& checkpoint, const std::vector<int32_t>& ids,
                            int tensor_ranks, int stages, ActivationMode mode) {
  const auto count = static_cast<int64_t>(ids.size());
  std::vector<int32_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), 0);
  const std::vector<int64_t> slots(positions.begin(), positions.end());
  std::vector<int32_t> block_table(kBlocks);
  std::iota(block_table.begin(), block_table.end(), 0);
  const kernels::AttentionSequence sequence = {
      .first_row = 0, .rows = count, .first_position = 0, .block_table = block_table.data()};
  const Batch batch = {.token_ids = ids,
                       .positions = positions,
                       .slots = slots,
                       .sequences = {&sequence, 1},
                       .logit_rows = positions};
  const topology::Partition partition = ValueOf(topology::PartitionModel(
      checkpoint.model_spec().Extents(),
      {.tensor_ranks = tensor_ranks, .stages = stages, .stage_layers = {}}));
  std::vector<float> residual;
  std::vector<float> logits;
  for (int stage = 0; stage < stages; ++stage) {
    auto groups = ValueOf(comm::MakeThreadCommunicators(tensor_ranks));
    std::vector<std::vector<float>> streams(tensor_ranks, residual);
    std::vector<std::vector<float>> results(tensor_ranks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < tensor_ranks; ++rank) {
      threads.emplace_back([&, rank] {
        TestRank test_rank(checkpoint, partition.parts[stage * tensor_ranks + rank], mode,
                           std::move(groups[rank]));
        results[rank] = test_rank.Run(batch, &streams[rank]);
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (int rank = 0; rank < tensor_ranks; ++rank) {
      EXPECT_EQ(streams[rank], streams[0]) << "rank " << rank;
      EXPECT_EQ(results[rank], results[0]) << "rank " << rank;
    }
    residual = streams[0];
    logits = results[0];
  }
  return logits;
}

class LayoutTest : public ::testing::TestWithParam<const char*> {};

TEST_P(LayoutTest, ABitDoesNotDependOnTheLayout) {
  const std::string folder = testing::FamilyFolder(GetParam());
  for (const std::string& path : testing::ModelsOf(GetParam())) {
    const auto checkpoint = ValueOf(weights::Checkpoint::Open(path));
    const nlohmann::json expected = nlohmann::json::parse(std::ifstream(folder + "/expected.json"));
    const std::vector<int32_t> ids = expected["sequences"][2]["input_ids"];
    for (const ActivationMode mode : {ActivationMode::kFloat32, ActivationMode::kAuto}) {
      const std::vector<float> wanted = LogitsOf(*checkpoint, ids, 1, 1, mode);
      ASSERT_EQ(static_cast<int64_t>(wanted.size()),
                static_cast<int64_t>(ids.size()) * checkpoint->model_spec().vocabulary);
      for (const int tensor_ranks : {1, 2, 4, 8}) {
        for (const int stages : {1, 2}) {
          EXPECT_EQ(LogitsOf(*checkpoint, ids, tensor_ranks, stages, mode), wanted)
              << path << " tensor " << tensor_ranks << " stages " << stages;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, LayoutTest,
                         ::testing::Values("llama", "llama_rope_linear", "llama_rope_llama3",
                                           "llama_rope_yarn", "llama_bias", "mistral", "qwen2",
                                           "qwen3", "phi3", "phi3_longrope", "gemma2",
                                           "gemma3_text", "smollm3", "olmo2", "exaone4", "glm4",
                                           "granite", "ernie4_5", "starcoder2", "cohere2",
                                           "nemotron", "mixtral", "qwen2_moe", "qwen3_moe",
                                           "glm4_moe", "gpt_oss", "deepseek_v2", "deepseek_v3",
                                           "arcee", "seed_oss", "olmo3", "olmoe", "minimax_m2"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace trireme::model
