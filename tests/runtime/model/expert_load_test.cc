#include "runtime/model/expert_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace trireme::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Four layers: dense, 3 experts, 130 experts, 3 experts.
spec::ModelSpec Model() {
  spec::ModelSpec model;
  model.layers.resize(4);
  for (const auto& [layer, experts] : {std::pair{1, 3}, {2, 130}, {3, 3}}) {
    model.layers[static_cast<size_t>(layer)].feed_forward.experts =
        spec::ExpertsSpec{.count = experts, .used = 2};
  }
  return model;
}

TEST(ExpertLoadTest, TokensOfStepsAddUp) {
  ExpertLoad load(Model());
  load.Add(1, std::vector<int32_t>{0, 2, 2, 6}.data());
  load.Add(1, std::vector<int32_t>{0, 0, 1, 2}.data());
  load.Add(3, std::vector<int32_t>{0, 1, 1, 2}.data());
  const std::vector<ExpertLayerLoad> layers = load.Layers({0, 4});
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[0].layer, 1);
  EXPECT_THAT(layers[0].tokens, ElementsAre(2, 1, 5));
  EXPECT_EQ(layers[1].tokens, std::vector<uint64_t>(130));
  EXPECT_EQ(layers[2].layer, 3);
  EXPECT_THAT(layers[2].tokens, ElementsAre(1, 0, 1));
  EXPECT_THAT(load.Layers({0, 1}), IsEmpty());
  ASSERT_EQ(load.Layers({3, 4}).size(), 1u);
}

TEST(ExpertLoadTest, TheBusiestIsComparedWithTheMean) {
  EXPECT_EQ(BusiestRatio({}), 0);
  EXPECT_EQ(BusiestRatio(std::vector<uint64_t>{0, 0}), 0);
  EXPECT_EQ(BusiestRatio(std::vector<uint64_t>{4, 4, 4}), 1);
  EXPECT_EQ(BusiestRatio(std::vector<uint64_t>{6, 1, 1, 0}), 3);
}

TEST(ExpertLoadTest, PiecesBringTheCountersOfARangeToAnotherRank) {
  ExpertLoad there(Model());
  std::vector<int32_t> begins = {0};
  for (int32_t expert = 0; expert < 130; ++expert) {
    begins.push_back(begins.back() + expert % 7);
  }
  there.Add(2, begins.data());
  there.Add(3, std::vector<int32_t>{0, 4, 4, 5}.data());
  ExpertLoad here(Model());
  here.Add(1, std::vector<int32_t>{0, 1, 2, 3}.data());
  size_t cursor = 0;
  size_t pieces = 0;
  for (; here.Layers({3, 4})[0].tokens != there.Layers({3, 4})[0].tokens; ++pieces) {
    ASSERT_LT(pieces, 20u);
    const std::string piece = there.Piece({2, 4}, 100, &cursor);
    EXPECT_LE(piece.size(), 100u);
    EXPECT_TRUE(here.TakePiece(piece));
  }
  EXPECT_EQ(pieces, 12u);  // 133 counters, 12 a piece
  EXPECT_EQ(here.Layers({2, 3})[0].tokens, there.Layers({2, 3})[0].tokens);
  EXPECT_THAT(here.Layers({1, 2})[0].tokens, ElementsAre(1, 1, 1));  // not of the range
  there.Add(3, std::vector<int32_t>{0, 0, 0, 9}.data());
  for (size_t i = 0; i < pieces; ++i) {
    here.TakePiece(there.Piece({2, 4}, 100, &cursor));
  }
  EXPECT_THAT(here.Layers({3, 4})[0].tokens, ElementsAre(4, 0, 10));
  EXPECT_EQ(there.Piece({0, 1}, 100, &cursor), "");
}

TEST(ExpertLoadTest, WhatIsNoPieceIsRefused) {
  ExpertLoad load(Model());
  size_t cursor = 0;
  const std::string piece = load.Piece({3, 4}, 28, &cursor);  // three counters, from 133 on
  EXPECT_TRUE(load.TakePiece(piece));
  for (size_t size = 0; size < piece.size(); ++size) {
    EXPECT_EQ(load.TakePiece(piece.substr(0, size)), size >= 4 && (size - 4) % 8 == 0) << size;
  }
  std::string beyond = piece;
  beyond[0] = static_cast<char>(134);
  EXPECT_FALSE(load.TakePiece(beyond));
  beyond[3] = static_cast<char>(0xFF);
  EXPECT_FALSE(load.TakePiece(beyond));
}

}  // namespace
}  // namespace trireme::model
