#include "runtime/weights/shard_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "kernels/kernel_table.h"
#include "runtime/weights/checkpoint.h"
#include "tests/support/gguf_fixtures.h"
#include "topology/partition_model.h"

namespace trireme::weights {
namespace {

using ::testing::HasSubstr;

constexpr char kQuantized[] =
    "tests/data/gguf-files/good/base-bpe.gguf";  // 4 heads of 8, Q4_0 and Q8_0, tied
constexpr char kFloat[] = "tests/data/families/llama/model.gguf";  // 8 heads of 16

const kernels::KernelTable& Reference() { return *kernels::FindKernelTable("reference"); }

absl::StatusOr<ShardPlan> PlanOf(const Checkpoint& checkpoint, int tensor_ranks, int stages,
                                 int rank) {
  const auto partition = topology::PartitionModel(
      checkpoint.model_spec().Extents(),
      {.tensor_ranks = tensor_ranks, .stages = stages, .stage_layers = {}});
  EXPECT_TRUE(partition.ok()) << partition.status();
  return PlanShard(checkpoint, partition->parts[rank], Reference());
}

// Values of every tensor that all ranks together hold, by role and layer.
using Values = std::map<std::pair<int, int64_t>, int64_t>;

Values ValuesHeld(const Checkpoint& checkpoint, int tensor_ranks, int stages) {
  Values held;
  for (int rank = 0; rank < tensor_ranks * stages; ++rank) {
    const auto plan = PlanOf(checkpoint, tensor_ranks, stages, rank);
    EXPECT_TRUE(plan.ok()) << plan.status();
    for (const PlannedTensor& tensor : plan->tensors) {
      for (const PlannedSlice& slice : tensor.slices) {
        held[{static_cast<int>(tensor.role), tensor.layer}] +=
            slice.shape.rows * slice.shape.columns;
      }
    }
  }
  return held;
}

TEST(ShardPlanTest, SplitMatricesAreHeldOnceByAllRanksTogether) {
  const auto checkpoint = Checkpoint::Open(kFloat);
  ASSERT_TRUE(checkpoint.ok());
  const Values whole = ValuesHeld(**checkpoint, 1, 1);
  for (const int tensor_ranks : {2, 4, 8}) {
    const Values cut = ValuesHeld(**checkpoint, tensor_ranks, 1);
    for (const auto& [key, values] : whole) {
      const spec::TensorRole& role = spec::TensorRoles()[key.first];
      const bool is_shared = role.split == spec::SplitRule::kReplicated ||
                             role.split == spec::SplitRule::kKeyValueHeadRows;
      if (is_shared) {
        EXPECT_GE(cut.at(key), values) << role.gguf_name;
      } else {
        EXPECT_EQ(cut.at(key), values) << role.gguf_name << " over " << tensor_ranks;
      }
    }
  }
}

TEST(ShardPlanTest, PlacesOfTheArenaDoNotOverlapAndAddUp) {
  const auto checkpoint = Checkpoint::Open(kQuantized);
  ASSERT_TRUE(checkpoint.ok());
  const auto plan = PlanOf(**checkpoint, 1, 1, 0);
  ASSERT_TRUE(plan.ok());
  std::map<int64_t, int64_t> places;
  for (const PlannedTensor& tensor : plan->tensors) {
    for (const PlannedSlice& slice : tensor.slices) {
      places[slice.arena_offset] = slice.arena_bytes;
    }
  }
  int64_t end = 0;
  for (const auto& [offset, bytes] : places) {
    EXPECT_GE(offset, end);
    EXPECT_LT(offset - end, 64);
    end = offset + bytes;
  }
  EXPECT_LT(plan->arena_bytes - end, 64);
}

TEST(ShardPlanTest, ATiedOutputSharesTheEmbeddingsBytes) {
  const auto checkpoint = Checkpoint::Open(kQuantized);
  ASSERT_TRUE(checkpoint.ok());
  ASSERT_TRUE((*checkpoint)->model_spec().tied_output);
  const auto plan = PlanOf(**checkpoint, 1, 1, 0);
  ASSERT_TRUE(plan.ok());
  std::map<spec::Role, int64_t> offsets;
  for (const PlannedTensor& tensor : plan->tensors) {
    offsets[tensor.role] = tensor.slices[0].arena_offset;
  }
  EXPECT_EQ(offsets.at(spec::Role::kEmbedding), offsets.at(spec::Role::kOutput));
}

TEST(ShardPlanTest, HeadsThatThirtyTwoDoesNotDivideAreDecodedOnEveryLayoutAlike) {
  const auto checkpoint = Checkpoint::Open(kQuantized);
  ASSERT_TRUE(checkpoint.ok());
  for (const int tensor_ranks : {1, 2, 4}) {
    for (int rank = 0; rank < tensor_ranks; ++rank) {
      const auto plan = PlanOf(**checkpoint, tensor_ranks, 1, rank);
      ASSERT_TRUE(plan.ok());
      for (const PlannedTensor& tensor : plan->tensors) {
        for (const PlannedSlice& slice : tensor.slices) {
          EXPECT_EQ(slice.is_decoded, tensor.role == spec::Role::kAttentionOutput);
        }
      }
    }
  }
}

TEST(ShardPlanTest, AStageHoldsItsLayersAndItsEnd) {
  const auto checkpoint = Checkpoint::Open(kFloat);
  ASSERT_TRUE(checkpoint.ok());
  std::set<spec::Role> first;
  std::set<spec::Role> last;
  const auto first_plan = PlanOf(**checkpoint, 1, 2, 0);
  const auto last_plan = PlanOf(**checkpoint, 1, 2, 1);
  ASSERT_TRUE(first_plan.ok() && last_plan.ok());
  for (const PlannedTensor& tensor : first_plan->tensors) first.insert(tensor.role);
  for (const PlannedTensor& tensor : last_plan->tensors) last.insert(tensor.role);
  EXPECT_TRUE(first.count(spec::Role::kEmbedding) == 1 && first.count(spec::Role::kOutput) == 0);
  EXPECT_TRUE(last.count(spec::Role::kEmbedding) == 0 && last.count(spec::Role::kOutput) == 1);
}

TEST(ShardPlanTest, FaultyTensorsAreRefusedByNameOnEveryRank) {
  int judged = 0;
  for (const BadGguf& bad : BadGgufs()) {
    const std::string path = std::string(kGgufFixtures) + "/bad/" + bad.file;
    const auto checkpoint = Checkpoint::Open(path);
    if (bad.stage != "model" || !checkpoint.ok()) {
      continue;  // judged in families_test
    }
    for (const int rank : {0, 1}) {
      const auto plan = PlanOf(**checkpoint, 1, 2, rank);
      EXPECT_EQ(JudgeError(plan.status(), path, bad.words), "") << bad.wrong;
    }
    ++judged;
  }
  EXPECT_GE(judged, 5);
}

}  // namespace
}  // namespace trireme::weights
