#include "runtime/engine/in_process_pipeline.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace trireme::engine {
namespace {

StepPlan PlanOf(uint64_t step) {
  StepPlan plan;
  plan.step = step;
  plan.token_ids = {static_cast<int32_t>(step), 2};
  return plan;
}

TEST(InProcessPipelineTest, GivesEveryRankEveryPlanInOrder) {
  constexpr uint64_t kSteps = 3000;
  InProcessPipeline pipeline(3, 2);
  Mutex mutex;
  ConditionVariable answered;
  uint64_t results = 0;
  pipeline.SetHandlers(
      [&](StepResult&& result) {
        MutexLock lock(&mutex);
        EXPECT_EQ(result.step, results + 1);
        results = result.step;
        answered.SignalAll();
      },
      nullptr);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&pipeline, rank] {
      StepPlan plan;
      StepResult result;
      for (uint64_t step = 1; step <= kSteps; ++step) {
        ASSERT_TRUE(pipeline.source(rank)->ReceivePlan(&plan).ok());
        ASSERT_EQ(plan.step, step);
        ASSERT_EQ(plan.token_ids[0], static_cast<int32_t>(step));
        if (rank == 2) {
          result.step = step;
          ASSERT_TRUE(pipeline.source(rank)->SendResult(result).ok());
        }
      }
    });
  }
  uint64_t sent = 0;
  while (sent < kSteps) {
    {
      MutexLock lock(&mutex);
      while (sent >= results + 2) {
        answered.Wait(&mutex);
      }
    }
    // A rank other than the last may lag by one plan more than the results say.
    const absl::Status status = pipeline.SendPlan(PlanOf(sent + 1));
    if (status.ok()) {
      ++sent;
    } else {
      ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
      std::this_thread::yield();
    }
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
  EXPECT_EQ(results, kSteps);
}

TEST(InProcessPipelineTest, NamesTheRankThatDoesNotTakeItsPlans) {
  InProcessPipeline pipeline(1, 1);
  EXPECT_TRUE(pipeline.SendPlan(PlanOf(1)).ok());
  EXPECT_TRUE(pipeline.SendPlan(PlanOf(2)).ok());  // the place for a shutdown
  const absl::Status status = pipeline.SendPlan(PlanOf(3));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(std::string(status.message()).find("rank 0"), std::string::npos);
}

TEST(InProcessPipelineTest, CloseWakesRanksThatWait) {
  InProcessPipeline pipeline(2, 1);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&pipeline, rank] {
      StepPlan plan;
      EXPECT_EQ(pipeline.source(rank)->ReceivePlan(&plan).message(), "gone");
    });
  }
  pipeline.Close(absl::UnavailableError("gone"));
  for (std::thread& rank : ranks) {
    rank.join();
  }
  EXPECT_FALSE(pipeline.SendPlan(PlanOf(1)).ok());
}

TEST(InProcessPipelineTest, ReportsALossOnce) {
  InProcessPipeline pipeline(2, 1);
  int losses = 0;
  pipeline.SetHandlers([](StepResult&&) {}, [&losses](const absl::Status&) { ++losses; });
  pipeline.ReportLoss(absl::UnavailableError("rank 1"));
  pipeline.ReportLoss(absl::UnavailableError("rank 0"));
  EXPECT_EQ(losses, 1);
}

}  // namespace
}  // namespace trireme::engine
