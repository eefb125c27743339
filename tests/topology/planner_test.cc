#include "topology/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme::topology {
namespace {

using ::testing::HasSubstr;

TEST(PlannerTest, SequencesTakeWholeBlocks) {
  EXPECT_EQ(BlocksThatFit(1000, 300), 3);
  // 100 blocks of 16 tokens; 33 tokens take 3 blocks.
  EXPECT_EQ(CapacityOf(100, 16, 33).tokens, 1600);
  EXPECT_EQ(CapacityOf(100, 16, 33).sequences, 33);
  EXPECT_EQ(CapacityOf(100, 16, 48).sequences, 33);
  EXPECT_EQ(CapacityOf(100, 16, 49).sequences, 25);
}

constexpr int64_t kGibi = int64_t{1} << 30;

// 10 GiB in 8 bits, 4 GiB of KV for 4096 tokens, 1 GiB of workspace.
HostDemand Demand(int64_t available_bytes) {
  return {.host = "a",
          .available_bytes = available_bytes,
          .weight_bytes = 10 * kGibi,
          .kv_bytes = 4 * kGibi,
          .workspace_bytes = kGibi,
          .kv_bytes_per_token = kGibi / 1024,
          .bits_per_weight = 8};
}

TEST(PlannerTest, WhatFitsIsNotComplainedAbout) {
  EXPECT_EQ(DescribeMisfit(Demand(15 * kGibi)), "");
}

TEST(PlannerTest, WhatDoesNotFitSaysWhatWould) {
  // 13 GiB: 13 - 4 - 1 = 8 GiB of weights are 8 * 8 / 10 = 6.4 bits; 13 - 10 - 1 = 2 GiB of KV are
  // 2048 tokens; 15 / 13 of a host are two.
  EXPECT_EQ(DescribeMisfit(Demand(13 * kGibi)),
            "host a has 13.00 GiB for 15.00 GiB (weights 10.00 GiB, KV 4.00 GiB, workspace 1.00 "
            "GiB); what would fit: at most 6.40 bits a weight (now 8.00), or KV for at most 2048 "
            "tokens (a shorter context, or memory.kv), or more ranks on 2 hosts like it");
  // 4 GiB: no bits and no KV help; 15 / 4 are four hosts.
  EXPECT_THAT(DescribeMisfit(Demand(4 * kGibi)),
              HasSubstr("what would fit: more ranks on 4 hosts like it"));
}

// 10 layers of 1 ms for one token, 0.1 ms for each further one, an output matrix of 2 ms.
StageSpeed Stage(double layers, double output_seconds) {
  return {.layer_units = layers,
          .decode_layer_seconds = 1e-3,
          .output_seconds = output_seconds,
          .prefill_layer_seconds = 1e-4,
          .decode_bytes = 9e6,
          .kv_bytes_per_token = 0,
          .stream_bytes_per_second = 1e9};
}

TEST(PlannerTest, ATokenTakesItsLayersItsOutputAndItsStep) {
  const SpeedPrediction speed = PredictSpeed(
      {.stages = {Stage(10, 2e-3)}, .step_seconds = 0.5e-3, .sequences = 11, .sequence_tokens = 0});
  EXPECT_NEAR(speed.decode_tokens_per_second, 1 / 12.5e-3, 1e-9);  // 10 + 2 + 0.5 ms
  EXPECT_NEAR(speed.prefill_tokens_per_second, 1 / 1e-3, 1e-9);
  // 11 sequences: 12 ms for the first, 10 * 1 ms for the others, 0.5 ms for the step.
  EXPECT_NEAR(speed.throughput_tokens_per_second, 11 / 22.5e-3, 1e-9);
  // 9 MB at 1 GB/s are 9 of 12.5 ms.
  EXPECT_EQ(speed.decode_limit, "reading weights from memory (72 % of a token's time)");
}

TEST(PlannerTest, StagesAddUpForOneTokenAndOverlapForMany) {
  const SpeedPrediction speed =
      PredictSpeed({.stages = {Stage(6, 0), Stage(4, 2e-3)},
                    .link = {.bytes_per_second = 1e6, .latency_seconds = 1e-3},
                    .residual_bytes = 7000,
                    .sequences = 2});
  EXPECT_NEAR(speed.decode_tokens_per_second, 1 / 20e-3, 1e-9);     // 6 + 6 + (1 + 7) ms
  EXPECT_NEAR(speed.throughput_tokens_per_second, 1 / 6e-3, 1e-9);  // a token every 6 ms
  // 18 MB at 1 GB/s would be 18 ms, more than the stages take: the links are not the limit.
  EXPECT_THAT(speed.decode_limit, HasSubstr("reading weights"));
}

TEST(PlannerTest, KeysAndValuesAreReadForEverySequence) {
  StageSpeed stage = Stage(10, 0);
  stage.prefill_layer_seconds = 0;
  stage.kv_bytes_per_token = 1000;
  const SpeedPrediction speed =
      PredictSpeed({.stages = {stage}, .sequences = 4, .sequence_tokens = 5000});
  // 10 ms, and 4 * 5000 * 1000 bytes at 1 GB/s are 20 ms.
  EXPECT_NEAR(speed.throughput_tokens_per_second, 4 / 30e-3, 1e-9);
}

TEST(PlannerTest, StatedSpeedsAreTheSlowerOfMemoryAndArithmetic) {
  const StatedSpeed stated = {.stream_bytes_per_second = 1e9,
                              .operations_per_second = 1e9,
                              .layers = 10,
                              .tensor_ranks = 1,
                              .layer_bytes = 5e6,
                              .output_bytes = 2e6,
                              .layer_operations = 1e6};
  const StageSpeed speed = SpeedFromStated(stated);
  EXPECT_DOUBLE_EQ(speed.decode_layer_seconds, 5e-3);  // memory: 5 MB at 1 GB/s; arithmetic: 1 ms
  EXPECT_DOUBLE_EQ(speed.output_seconds, 2e-3);
  EXPECT_DOUBLE_EQ(speed.prefill_layer_seconds, 1e-3);  // the weights are read once for many
  EXPECT_DOUBLE_EQ(speed.decode_bytes, 52e6);
  StatedSpeed slow = stated;
  slow.operations_per_second = 1e8;
  EXPECT_DOUBLE_EQ(SpeedFromStated(slow).decode_layer_seconds, 10e-3);
  StatedSpeed cut = stated;
  cut.tensor_ranks = 2;
  cut.residual_bytes = 5e3;  // two all-reduces of 2 us + 1 us
  EXPECT_NEAR(SpeedFromStated(cut).decode_layer_seconds, 5e-3 + 6e-6, 1e-12);
}

}  // namespace
}  // namespace trireme::topology
