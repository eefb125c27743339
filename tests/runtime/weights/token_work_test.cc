#include "runtime/weights/token_work.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/kernel_table.h"
#include "runtime/weights/checkpoint.h"
#include "topology/partition_model.h"

namespace trireme::weights {
namespace {

struct Plans {
  std::unique_ptr<Checkpoint> checkpoint;
  std::vector<ShardPlan> ranks;

  const spec::ModelSpec& model() const { return checkpoint->model_spec(); }
};

Plans PlansOf(const char* path, topology::Layout layout) {
  Plans plans;
  auto checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  plans.checkpoint = *std::move(checkpoint);
  const auto partition = topology::PartitionModel(plans.model().Extents(), layout);
  EXPECT_TRUE(partition.ok()) << partition.status();
  for (const topology::RankPart& part : partition->parts) {
    auto plan = PlanShard(*plans.checkpoint, part, *kernels::FindKernelTable("reference"));
    EXPECT_TRUE(plan.ok()) << plan.status();
    plans.ranks.push_back(*std::move(plan));
  }
  return plans;
}

// Width 64, 8 heads and 2 key/value heads of 16, 3 of 8 experts of width 32, 3 layers, 320 words.
constexpr char kMixture[] = "tests/data/families/gpt_oss/model.gguf";
constexpr int64_t kMixtureLayer =
    64 * (8 * 16) + 2 * 64 * (2 * 16) + (8 * 16) * 64 + 64 * 8 + 3 * (3 * 64 * 32);

TEST(TokenWorkTest, OfAMixtureTheChosenExpertsCount) {
  const Plans plans = PlansOf(kMixture, {});
  const ShardPlan& plan = plans.ranks[0];
  EXPECT_EQ(LayerWork(plan, plans.model()).AllProducts(), 3 * kMixtureLayer);
  EXPECT_EQ(DecodeWork(plan, plans.model()).AllProducts(), 3 * kMixtureLayer + 64 * 320);
  // Routers are F32, all else is BF16.
  const auto of_kind = [&](kernels::ActivationKind kind) {
    return LayerWork(plan, plans.model()).products[static_cast<size_t>(kind)];
  };
  EXPECT_EQ(of_kind(kernels::ActivationKind::kFloat32), 3 * 64 * 8);
  EXPECT_EQ(of_kind(kernels::ActivationKind::kBFloat16), 3 * (kMixtureLayer - 64 * 8));
  EXPECT_EQ(of_kind(kernels::ActivationKind::kInt8), 0);

  int64_t embedding = 0;
  int64_t experts = 0;
  int64_t all = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    for (const PlannedSlice& slice : tensor.slices) {
      all += slice.arena_bytes;
      embedding += tensor.role == spec::Role::kEmbedding ? slice.arena_bytes : 0;
      experts +=
          spec::RoleOf(tensor.role).place == spec::Place::kEveryExpert ? slice.arena_bytes : 0;
    }
  }
  EXPECT_EQ(DecodeWork(plan, plans.model()).bytes, all - embedding - experts / 8 * 5);
}

// Layer 0 is dense and 128 wide; then 4 of 16 experts of width 24 and a shared one. Queries go
// through 48 values, keys and values through 32 and a rotated key of 8.
TEST(TokenWorkTest, SharedExpertsAndLatentHeadsCountWhole) {
  const Plans plans = PlansOf("tests/data/families/deepseek_v3/model.safetensors", {});
  const int64_t attention =
      64 * 48 + 48 * (8 * 32) + 64 * (32 + 8) + 32 * 8 * (24 + 16) + 8 * 16 * 64;
  const int64_t mixture = 64 * 16 + (4 + 1) * (3 * 64 * 24);
  EXPECT_EQ(LayerWork(plans.ranks[0], plans.model()).AllProducts(),
            3 * attention + 3 * 64 * 128 + 2 * mixture);
}

TEST(TokenWorkTest, RanksShareTheWorkAndStagesTheLayers) {
  const Plans plans = PlansOf(kMixture, {.tensor_ranks = 2, .stages = 3, .stage_layers = {}});
  int64_t first_stage = 0;
  int64_t all = 0;
  for (const ShardPlan& plan : plans.ranks) {
    const int64_t products = LayerWork(plan, plans.model()).AllProducts();
    all += products;
    first_stage += plan.part.first_stage ? products : 0;
  }
  const int64_t router = 64 * 8;  // each rank has all of it
  EXPECT_EQ(first_stage, kMixtureLayer + router);
  EXPECT_EQ(all, 3 * (kMixtureLayer + router));
}

}  // namespace
}  // namespace trireme::weights
