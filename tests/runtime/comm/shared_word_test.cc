#include "runtime/comm/shared_word.h"

#include <gtest/gtest.h>

#include <thread>

namespace trireme::comm {
namespace {

absl::Status NeverStop() { return absl::OkStatus(); }

TEST(SharedWordTest, CountersCompareAcrossTheWrap) {
  EXPECT_TRUE(IsAtLeast(5, 5));
  EXPECT_TRUE(IsAtLeast(6, 5));
  EXPECT_FALSE(IsAtLeast(5, 6));
  EXPECT_TRUE(IsAtLeast(2, 0xfffffffeU));
  EXPECT_FALSE(IsAtLeast(0xfffffffeU, 2));
}

TEST(SharedWordTest, APublishWakesASleeper) {
  SharedWord word = {};
  SpinBudget budget;
  std::atomic<int> waiting{0};
  std::thread publisher([&] {
    while (word.sleepers.load() == 0) {
      std::this_thread::yield();
    }
    EXPECT_EQ(waiting.load(), 1);
    Publish(word, 7);
  });
  EXPECT_TRUE(WaitUntilAtLeast(word, 7, budget, waiting, NeverStop).ok());
  publisher.join();
  EXPECT_EQ(waiting.load(), 0);
  EXPECT_EQ(word.sleepers.load(), 0U);
}

TEST(SharedWordTest, AStopEndsTheWait) {
  SharedWord word = {};
  SpinBudget budget;
  std::atomic<int> waiting{0};
  const absl::Status reason = absl::CancelledError("enough");
  EXPECT_EQ(WaitUntilAtLeast(word, 1, budget, waiting, [&] { return reason; }), reason);
}

TEST(SharedWordTest, WhatWasPublishedBeforeTheStopCounts) {
  SharedWord word = {};
  SpinBudget budget;
  std::atomic<int> waiting{0};
  const absl::Status status = WaitUntilAtLeast(word, 1, budget, waiting, [&] {
    Publish(word, 1);  // the peer publishes and leaves between our two looks
    return absl::UnavailableError("gone");
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(SharedWordTest, TheSpinShrinksWhileItDoesNotPayAndGrowsAgain) {
  SpinBudget budget;
  const int full = budget.spins();
  for (int i = 0; i < 20; ++i) {
    budget.RecordMiss();
  }
  EXPECT_LT(budget.spins(), full / 10);
  EXPECT_GT(budget.spins(), 0);
  for (int i = 0; i < 20; ++i) {
    budget.RecordHit();
  }
  EXPECT_EQ(budget.spins(), full);
}

}  // namespace
}  // namespace trireme::comm
