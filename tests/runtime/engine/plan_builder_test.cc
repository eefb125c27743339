#include "runtime/engine/plan_builder.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trireme::engine {
namespace {

using ::testing::ElementsAre;

TEST(PlanBuilderTest, WritesDecodesAndChunksAsOnePlan) {
  schedule::Scheduler scheduler(
      {.tokens = 20, .sequences = 4, .logit_rows = 20, .context = 64, .blocks = 8});
  schedule::Request request;
  request.prompt = {11, 12};
  request.emitted = {13};
  request.stopping.max_tokens = 9;
  request.sampling.seed = 77;
  request.choice = 3;
  request.want_logprobs = true;
  schedule::Sequence first(request, schedule::SequencePurpose::kGenerate);
  scheduler.Add(&first);
  schedule::Batch batch;
  ASSERT_TRUE(scheduler.Next(1, &batch));
  scheduler.Complete(batch.entries[0]);
  scheduler.Append(&first, 14);

  request = {};
  for (int32_t token_id = 0; token_id < 18; ++token_id) {
    request.prompt.push_back(20 + token_id);
  }
  schedule::Sequence second(request, schedule::SequencePurpose::kScore);
  scheduler.Add(&second);
  ASSERT_TRUE(scheduler.Next(2, &batch));
  StepPlan plan;
  BuildPlan(batch, &plan);

  EXPECT_EQ(plan.step, 2u);
  ASSERT_EQ(plan.sequences.size(), 2u);
  EXPECT_EQ(plan.sequences[0].rows, 1);
  EXPECT_EQ(plan.sequences[0].first_position, 3);
  EXPECT_EQ(plan.sequences[1].first_row, 1);
  EXPECT_EQ(plan.sequences[1].rows, 18);
  EXPECT_EQ(plan.sequences[1].block_count, 2);
  EXPECT_EQ(plan.token_ids[0], 14);
  EXPECT_EQ(plan.token_ids[18], 37);
  EXPECT_THAT(plan.logit_rows,
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18));
  ASSERT_EQ(plan.samples.size(), 1u);
  EXPECT_EQ(plan.samples[0].logit_index, 0);
  EXPECT_EQ(plan.samples[0].position, 2);  // one emitted by an earlier attempt, one by this
  EXPECT_EQ(plan.samples[0].choice, 3u);
  EXPECT_EQ(plan.samples[0].sampling.seed, 77u);
  EXPECT_TRUE(plan.samples[0].want_logprob);
  EXPECT_TRUE(plan.want_logits);
  EXPECT_EQ(
      ValidateStepPlan(
          plan, {.tokens = 20, .sequences = 4, .logit_rows = 20, .context = 64, .blocks = 8}, 100),
      absl::OkStatus());
  scheduler.Remove(&first);
  scheduler.Remove(&second);
}

}  // namespace
}  // namespace trireme::engine
