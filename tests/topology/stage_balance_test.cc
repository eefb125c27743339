#include "topology/stage_balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace trireme::topology {
namespace {

using ::testing::ElementsAre;

StageCost Even(int64_t layers, double layer_seconds) {
  return {.layer_seconds = std::vector<double>(layers, layer_seconds),
          .layer_bytes = std::vector<int64_t>(layers, 1)};
}

TEST(StageBalanceTest, EqualStagesShareEvenlyAndEarlierOnesTakeMore) {
  EXPECT_THAT(*BalanceStages({Even(30, 1), Even(30, 1)}), ElementsAre(15, 15));
  EXPECT_THAT(*BalanceStages({Even(7, 1), Even(7, 1)}), ElementsAre(4, 3));
  EXPECT_THAT(*BalanceStages({Even(5, 1)}), ElementsAre(5));
}

TEST(StageBalanceTest, ANodeThatIsTwiceAsFastTakesTwiceTheLayers) {
  EXPECT_THAT(*BalanceStages({Even(30, 1), Even(30, 2)}), ElementsAre(20, 10));
}

TEST(StageBalanceTest, TheOutputMatrixWeighsLikeItsLayers) {
  std::vector<StageCost> stages = {Even(30, 1), Even(30, 1)};
  stages[1].fixed_seconds = 6;  // (30 + 6) / 2 = 18 = 12 + 6
  EXPECT_THAT(*BalanceStages(stages), ElementsAre(18, 12));
}

TEST(StageBalanceTest, MemoryBindsBeforeTime) {
  std::vector<StageCost> stages = {Even(30, 1), Even(30, 2)};
  stages[0].memory_bytes = 12;  // it would take 20 layers of a byte
  stages[0].fixed_bytes = 2;
  EXPECT_THAT(*BalanceStages(stages), ElementsAre(10, 20));
  stages[1].memory_bytes = 19;
  EXPECT_EQ(BalanceStages(stages).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(StageBalanceTest, MoreStagesThanLayersAreRefused) {
  EXPECT_EQ(BalanceStages({Even(1, 1), Even(1, 1)}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// The slowest stage of the best cut, by trying all of them.
double BestByTrying(const std::vector<StageCost>& stages, size_t stage, size_t begin) {
  const size_t layers = stages[0].layer_seconds.size();
  if (stage == stages.size()) {
    return begin == layers ? 0 : 1e9;
  }
  double best = 1e9;
  double seconds = stages[stage].fixed_seconds;
  for (size_t end = begin + 1; end <= layers; ++end) {
    seconds += stages[stage].layer_seconds[end - 1];
    best = std::min(best, std::max(seconds, BestByTrying(stages, stage + 1, end)));
  }
  return best;
}

TEST(StageBalanceTest, NoCutIsBetter) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> seconds(0.1, 2);
  for (int round = 0; round < 100; ++round) {
    const size_t layers = 3 + random() % 8;
    std::vector<StageCost> stages(1 + random() % 3);
    for (StageCost& stage : stages) {
      stage.fixed_seconds = seconds(random);
      for (size_t layer = 0; layer < layers; ++layer) {
        stage.layer_seconds.push_back(seconds(random));
        stage.layer_bytes.push_back(0);
      }
    }
    const auto counts = BalanceStages(stages);
    ASSERT_TRUE(counts.ok());
    double slowest = 0;
    size_t layer = 0;
    for (size_t s = 0; s < stages.size(); ++s) {
      double sum = stages[s].fixed_seconds;
      for (int64_t i = 0; i < (*counts)[s]; ++i) {
        sum += stages[s].layer_seconds[layer++];
      }
      slowest = std::max(slowest, sum);
    }
    EXPECT_EQ(layer, layers);
    EXPECT_NEAR(slowest, BestByTrying(stages, 0, 0), 1e-9);
  }
}

}  // namespace
}  // namespace trireme::topology
