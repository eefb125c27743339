#include "topology/partition_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace trireme::topology {
namespace {

using ::testing::HasSubstr;

// SmolLM2-135M: nothing divides evenly.
constexpr ModelExtents kSmall = {
    .layers = 30, .query_heads = 9, .key_value_heads = 3, .hidden_dim = 1536, .vocabulary = 49152};

// 90 units of 32 columns: leaf l begins at ceil(90 l / 8) = 0, 12, 23, 34, 45, 57, 68, 79.
TEST(PartOfHiddenTest, AWidthOfItsOwnIsCutIntoLeavesOfThirtyTwoColumns) {
  const HiddenPart second = PartOfHidden(2880, /*tensor_rank=*/1, /*tensor_ranks=*/4);
  EXPECT_EQ(second.columns, (Range{23 * 32, 45 * 32}));
  ASSERT_EQ(second.leaves.size(), 2u);
  EXPECT_EQ(second.leaves[0].index, 2);
  EXPECT_EQ(second.leaves[1].units, (Range{34 * 32, 45 * 32}));
}

TEST(PartOfHiddenTest, ANarrowLayerLeavesRanksWithoutColumns) {
  EXPECT_EQ(PartOfHidden(24, 0, 2).columns, (Range{0, 24}));
  EXPECT_EQ(PartOfHidden(24, 1, 2).columns.size(), 0);
  EXPECT_TRUE(PartOfHidden(24, 1, 2).leaves.empty());
  EXPECT_TRUE(PartOfHidden(0, 0, 1).leaves.empty());
}

TEST(PartitionModelTest, TwoRanksHoldFiveAndFourQueryHeads) {
  const auto partition =
      PartitionModel(kSmall, {.tensor_ranks = 2, .stages = 1, .stage_layers = {}});
  ASSERT_TRUE(partition.ok()) << partition.status();
  // Unit i of 9 is in leaf floor(8 i / 9): heads 0 and 1 share leaf 0, head 2 is leaf 1, ... head 8
  // is leaf 7.
  EXPECT_EQ(partition->parts[0].query_heads, (Range{0, 5}));
  EXPECT_EQ(partition->parts[1].query_heads, (Range{5, 9}));
  // Key/value head 1 serves query heads 3, 4 and 5: both ranks hold it.
  EXPECT_EQ(partition->parts[0].key_value_heads, (Range{0, 2}));
  EXPECT_EQ(partition->parts[1].key_value_heads, (Range{1, 3}));
  EXPECT_EQ(partition->parts[0].attention_leaves[0].units, (Range{0, 2}));
  EXPECT_EQ(partition->parts[0].attention_leaves[1].units, (Range{2, 3}));
  EXPECT_EQ(partition->parts[0].hidden, (Range{0, 768}));
  EXPECT_EQ(partition->parts[1].vocabulary, (Range{24576, 49152}));
}

TEST(PartitionModelTest, LeavesFollowTheFloorFormula) {
  for (int64_t units = 1; units <= 200; ++units) {
    const std::vector<Range> leaves = LeafRanges(units);
    for (int64_t unit = 0; unit < units; ++unit) {
      EXPECT_TRUE(leaves[8 * unit / units].contains(unit)) << unit << " of " << units;
    }
    EXPECT_EQ(leaves.front().begin, 0);
    EXPECT_EQ(leaves.back().end, units);
  }
}

TEST(PartitionModelTest, EveryLayoutCoversEverythingOnce) {
  for (const int tensor_ranks : {1, 2, 4, 8}) {
    for (const int stages : {1, 2, 3, 7, 30}) {
      for (const int64_t vocabulary : {331, 49152, 333}) {
        ModelExtents extents = kSmall;
        extents.vocabulary = vocabulary;
        const auto partition = PartitionModel(
            extents, {.tensor_ranks = tensor_ranks, .stages = stages, .stage_layers = {}});
        ASSERT_TRUE(partition.ok());
        ASSERT_EQ(partition->parts.size(), static_cast<size_t>(tensor_ranks * stages));
        int64_t heads = 0;
        int64_t hidden = 0;
        int64_t rows = 0;
        int64_t layers = 0;
        for (const RankPart& part : partition->parts) {
          EXPECT_GE(part.query_heads.size(), 1);
          int64_t leaf_heads = 0;
          for (const Leaf& leaf : part.attention_leaves) leaf_heads += leaf.units.size();
          int64_t leaf_columns = 0;
          for (const Leaf& leaf : part.hidden_leaves) leaf_columns += leaf.units.size();
          EXPECT_EQ(leaf_heads, part.query_heads.size());
          EXPECT_EQ(leaf_columns, part.hidden.size());
          heads += part.query_heads.size();
          hidden += part.hidden.size();
          rows += part.vocabulary.size();
          layers += part.tensor_rank == 0 ? part.layers.size() : 0;
        }
        EXPECT_EQ(heads, stages * extents.query_heads);
        EXPECT_EQ(hidden, stages * extents.hidden_dim);
        EXPECT_EQ(rows, stages * extents.vocabulary);
        EXPECT_EQ(layers, extents.layers);
      }
    }
  }
}

TEST(PartitionModelTest, RanksHoldWholeSubtrees) {
  // The leaves of a rank of a finer cut lie inside one rank of a coarser cut.
  for (const int tensor_ranks : {2, 4, 8}) {
    const auto fine =
        PartitionModel(kSmall, {.tensor_ranks = tensor_ranks, .stages = 1, .stage_layers = {}});
    const auto coarse =
        PartitionModel(kSmall, {.tensor_ranks = tensor_ranks / 2, .stages = 1, .stage_layers = {}});
    ASSERT_TRUE(fine.ok() && coarse.ok());
    for (const RankPart& part : fine->parts) {
      const RankPart& parent = coarse->parts[part.tensor_rank / 2];
      EXPECT_GE(part.query_heads.begin, parent.query_heads.begin);
      EXPECT_LE(part.query_heads.end, parent.query_heads.end);
      EXPECT_GE(part.hidden.begin, parent.hidden.begin);
      EXPECT_LE(part.hidden.end, parent.hidden.end);
    }
  }
}

TEST(PartitionModelTest, UnevenStagesAreTakenAsGiven) {
  const auto partition =
      PartitionModel(kSmall, {.tensor_ranks = 1, .stages = 3, .stage_layers = {4, 16, 10}});
  ASSERT_TRUE(partition.ok());
  EXPECT_EQ(partition->parts[1].layers, (Range{4, 20}));
  EXPECT_TRUE(partition->parts[2].last_stage);
  EXPECT_FALSE(partition->parts[1].first_stage);
}

TEST(PartitionModelTest, RefusalsNameBothNumbers) {
  ModelExtents few = kSmall;
  few.query_heads = 3;
  const auto too_many = PartitionModel(few, {.tensor_ranks = 4, .stages = 1, .stage_layers = {}});
  EXPECT_THAT(std::string(too_many.status().message()),
              HasSubstr("4 tensor ranks for a model of 3 query heads"));
  EXPECT_THAT(
      std::string(PartitionModel(kSmall, {.tensor_ranks = 3, .stages = 1, .stage_layers = {}})
                      .status()
                      .message()),
      HasSubstr("3 tensor ranks"));
  EXPECT_THAT(
      std::string(PartitionModel(kSmall, {.tensor_ranks = 1, .stages = 31, .stage_layers = {}})
                      .status()
                      .message()),
      HasSubstr("31 stages for a model of 30 layers"));
  EXPECT_THAT(
      std::string(PartitionModel(kSmall, {.tensor_ranks = 1, .stages = 2, .stage_layers = {10, 10}})
                      .status()
                      .message()),
      HasSubstr("add up to 20; the model has 30"));
}

}  // namespace
}  // namespace trireme::topology
