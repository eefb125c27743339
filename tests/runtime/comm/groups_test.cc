#include "runtime/comm/groups.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace trireme::comm {
namespace {

TEST(GroupsTest, OnlyWholeTreesOfTensorRanksAreAccepted) {
  for (const int tensor : {1, 2, 4, 8}) {
    EXPECT_TRUE(CheckLayout({.tensor_ranks = tensor, .stages = 3}).ok());
  }
  for (const int tensor : {-1, 0, 3, 5, 6, 7, 9, 16}) {
    const absl::Status status = CheckLayout({.tensor_ranks = tensor, .stages = 1});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << tensor;
    EXPECT_NE(status.message().find(std::to_string(tensor)), std::string::npos) << status;
  }
  EXPECT_FALSE(CheckLayout({.tensor_ranks = 1, .stages = 0}).ok());
  EXPECT_FALSE(CheckLayout({.tensor_ranks = 8, .stages = 33}).ok());
  EXPECT_FALSE(CheckLayout({.tensor_ranks = 8, .stages = 1 << 30}).ok());
}

TEST(GroupsTest, TheNumberOfProcessesMustBeThatOfTheLayout) {
  EXPECT_TRUE(CheckLayout({.tensor_ranks = 2, .stages = 3}, 6).ok());
  const absl::Status status = CheckLayout({.tensor_ranks = 2, .stages = 3}, 4);
  EXPECT_EQ(status.message(), "4 processes were started for 2 tensor ranks x 3 stages: start 6");
}

TEST(GroupsTest, ThreadRanksAreAGridOfStagesAndTensorRanks) {
  auto all = MakeThreadGroups({.tensor_ranks = 2, .stages = 3});
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 6U);
  const std::optional<int> previous[] = {std::nullopt, std::nullopt, 0, 1, 2, 3};
  const std::optional<int> next[] = {2, 3, 4, 5, std::nullopt, std::nullopt};
  for (int rank = 0; rank < 6; ++rank) {
    const RankGroups& groups = (*all)[static_cast<size_t>(rank)];
    EXPECT_EQ(groups.rank, rank);
    EXPECT_EQ(groups.control->rank(), rank);
    EXPECT_EQ(groups.control->size(), 6);
    EXPECT_EQ(groups.pipeline->rank(), rank);
    EXPECT_EQ(groups.tensor->rank(), rank % 2);
    EXPECT_EQ(groups.tensor->size(), 2);
    EXPECT_EQ(groups.previous_rank, previous[rank]);
    EXPECT_EQ(groups.next_rank, next[rank]);
  }
}

TEST(GroupsTest, SumsStayWithinAStageAndActivationsGoToTheNext) {
  auto all = MakeThreadGroups({.tensor_ranks = 2, .stages = 2});
  ASSERT_TRUE(all.ok()) << all.status();
  std::vector<float> results(4);
  std::vector<std::thread> threads;
  for (const RankGroups& groups : *all) {
    threads.emplace_back([&groups, &results] {
      float value = 0.0F;
      const absl::Span<std::byte> bytes(reinterpret_cast<std::byte*>(&value), sizeof(value));
      if (groups.previous_rank.has_value()) {
        ASSERT_TRUE(groups.pipeline->Receive(*groups.previous_rank, bytes).ok());
      }
      value += static_cast<float>(1 << groups.rank);
      ASSERT_TRUE(groups.tensor->AllReduceSum(absl::MakeSpan(&value, 1)).ok());
      if (groups.next_rank.has_value()) {
        ASSERT_TRUE(groups.pipeline->Send(*groups.next_rank, bytes).ok());
      }
      results[static_cast<size_t>(groups.rank)] = value;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  // Stage 0: 1 + 2. Stage 1: (3 + 4) + (3 + 8).
  EXPECT_EQ(results, (std::vector<float>{3, 3, 18, 18}));
}

TEST(GroupsTest, AnAbortReachesAllThreeGroups) {
  auto all = MakeThreadGroups({.tensor_ranks = 2, .stages = 1});
  ASSERT_TRUE(all.ok()) << all.status();
  const absl::Status reason = absl::UnavailableError("lost");
  (*all)[1].Abort(reason);
  EXPECT_EQ((*all)[0].control->Barrier(), reason);
  EXPECT_EQ((*all)[0].tensor->Barrier(), reason);
  EXPECT_EQ((*all)[0].pipeline->Barrier(), reason);
  EXPECT_FALSE((*all)[0].IsWaiting());
}

}  // namespace
}  // namespace trireme::comm
