#include "runtime/engine/step.h"

#include <functional>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trireme::engine {
namespace {

constexpr StepLimits kLimits = {
    .tokens = 8, .sequences = 4, .logit_rows = 4, .context = 64, .blocks = 10};
constexpr int64_t kVocabulary = 100;

// A prefill chunk of rows 15..17 in blocks 9, 2 and a decode at position 3 in block 5.
StepPlan GoodPlan() {
  StepPlan plan;
  plan.step = 7;
  plan.token_ids = {1, 2, 3, 99};
  plan.positions = {15, 16, 17, 3};
  plan.slots = {9 * 16 + 15, 2 * 16, 2 * 16 + 1, 5 * 16 + 3};
  plan.sequences = {
      {.first_row = 0, .rows = 3, .first_position = 15, .first_block = 0, .block_count = 2},
      {.first_row = 3, .rows = 1, .first_position = 3, .first_block = 2, .block_count = 1}};
  plan.block_tables = {9, 2, 5};
  plan.logit_rows = {2, 3};
  plan.samples.resize(2);
  plan.samples[1].logit_index = 1;
  return plan;
}

TEST(StepTest, AcceptsAPlanWithinTheLimits) {
  EXPECT_EQ(ValidateStepPlan(GoodPlan(), kLimits, kVocabulary), absl::OkStatus());
  StepPlan shutdown;
  shutdown.kind = PlanKind::kShutdown;
  EXPECT_EQ(ValidateStepPlan(shutdown, kLimits, kVocabulary), absl::OkStatus());
}

TEST(StepTest, RefusesEachFaultByName) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
  const struct {
    const char* named;
    std::function<void(StepPlan&)> spoil;
  } cases[] = {
      {"step", [](StepPlan& plan) { plan.step = 0; }},
      {"0 tokens", [](StepPlan& plan) { plan.token_ids.clear(); }},
      {"9 tokens", [](StepPlan& plan) { plan.token_ids.resize(9); }},
      {"positions", [](StepPlan& plan) { plan.positions.pop_back(); }},
      {"slots", [](StepPlan& plan) { plan.slots.push_back(0); }},
      {"token_ids[3]", [](StepPlan& plan) { plan.token_ids[3] = 100; }},
      {"token_ids[0]", [](StepPlan& plan) { plan.token_ids[0] = -1; }},
      {"0 sequences", [](StepPlan& plan) { plan.sequences.clear(); }},
      {"first_row[1]", [](StepPlan& plan) { plan.sequences[1].first_row = 2; }},
      {"rows[0]", [](StepPlan& plan) { plan.sequences[0].rows = 0; }},
      {"rows[1]", [](StepPlan& plan) { plan.sequences[1].rows = kMax; }},
      {"rows of sequences", [](StepPlan& plan) { plan.sequences.pop_back(); }},
      {"first_position[0]", [](StepPlan& plan) { plan.sequences[0].first_position = kMin; }},
      {"first_position[0]", [](StepPlan& plan) { plan.sequences[0].first_position = 62; }},
      {"first_position[0]", [](StepPlan& plan) { plan.sequences[0].first_position = kMax; }},
      {"first_block[1]", [](StepPlan& plan) { plan.sequences[1].first_block = -1; }},
      {"block_count[0]", [](StepPlan& plan) { plan.sequences[0].block_count = 1; }},
      {"block_count[1]", [](StepPlan& plan) { plan.block_tables.pop_back(); }},
      {"blocks in tables", [](StepPlan& plan) { plan.block_tables.push_back(1); }},
      {"block_tables[2]", [](StepPlan& plan) { plan.block_tables[2] = 10; }},
      {"block_tables[0]", [](StepPlan& plan) { plan.block_tables[0] = -1; }},
      {"positions[1]", [](StepPlan& plan) { plan.positions[1] = 15; }},
      {"slots[2]", [](StepPlan& plan) { plan.slots[2] = 0; }},
      {"logit_rows[1]", [](StepPlan& plan) { plan.logit_rows[1] = 2; }},
      {"logit_rows[1]", [](StepPlan& plan) { plan.logit_rows[1] = 4; }},
      {"logit_rows[0]", [](StepPlan& plan) { plan.logit_rows[0] = -1; }},
      {"5 logit rows", [](StepPlan& plan) { plan.logit_rows.resize(5); }},
      {"3 samples", [](StepPlan& plan) { plan.samples.resize(3); }},
      {"logit_index[1]", [](StepPlan& plan) { plan.samples[1].logit_index = 2; }},
      {"logit_index[0]", [](StepPlan& plan) { plan.samples[0].logit_index = -1; }},
      {"samples.position[0]", [](StepPlan& plan) { plan.samples[0].position = -1; }},
      {"top_p", [](StepPlan& plan) { plan.samples[0].sampling.top_p = 0; }},
  };
  for (const auto& bad : cases) {
    StepPlan plan = GoodPlan();
    bad.spoil(plan);
    const absl::Status status = ValidateStepPlan(plan, kLimits, kVocabulary);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.named;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(bad.named));
  }
}

TEST(StepTest, ClearForgetsEverythingButTheMemory) {
  StepPlan plan = GoodPlan();
  plan.Reserve(kLimits);
  plan.want_logits = true;
  plan.kind = PlanKind::kShutdown;
  plan.Clear();
  EXPECT_EQ(plan.kind, PlanKind::kCompute);
  EXPECT_EQ(plan.step, 0u);
  EXPECT_TRUE(plan.token_ids.empty() && plan.positions.empty() && plan.slots.empty());
  EXPECT_TRUE(plan.sequences.empty() && plan.block_tables.empty() && plan.logit_rows.empty());
  EXPECT_TRUE(plan.samples.empty());
  EXPECT_FALSE(plan.want_logits);
  EXPECT_GE(plan.token_ids.capacity(), 8u);

  StepResult result;
  result.step = 3;
  result.status = absl::InternalError("x");
  result.token_ids = {1};
  result.logits = {2};
  result.Clear();
  EXPECT_EQ(result.step, 0u);
  EXPECT_TRUE(result.status.ok() && result.token_ids.empty() && result.logits.empty());
}

}  // namespace
}  // namespace trireme::engine
