#include "runtime/serve/wire_values.h"

#include <gtest/gtest.h>

#include "engine.pb.h"
#include "inference.pb.h"
#include "tests/support/fake_controller.h"

namespace trireme::serve {
namespace {

TEST(WireValues, DurationsTravelBothWays) {
  for (const absl::Duration value :
       {absl::ZeroDuration(), absl::Nanoseconds(1), absl::Milliseconds(1500), absl::Hours(1000)}) {
    google::protobuf::Duration wire;
    SetDuration(value, &wire);
    EXPECT_EQ(DurationOf(wire), value);
  }
  google::protobuf::Duration wire;
  SetDuration(absl::Milliseconds(1500), &wire);
  EXPECT_EQ(wire.seconds(), 1);
  EXPECT_EQ(wire.nanos(), 500'000'000);
}

TEST(WireValues, UsageCountsThePromptOnceAndSumsTheChoices) {
  engine::Ending first;
  first.usage = {
      .prompt_tokens = 7, .cached_tokens = 2, .generated_tokens = 3, .recomputed_tokens = 1};
  engine::Ending second = first;
  second.usage.generated_tokens = 5;
  v1::Usage usage;
  SetUsage({first, second}, &usage);
  EXPECT_EQ(usage.prompt_tokens(), 7);
  EXPECT_EQ(usage.cached_tokens(), 2);
  EXPECT_EQ(usage.generated_tokens(), 8);
  EXPECT_EQ(usage.generated_tokens_per_choice(1), 5);
  EXPECT_EQ(usage.recomputed_tokens(), 2);
}

TEST(WireValues, TimingsAddUp) {
  engine::Ending ending;
  ending.timings = {
      .queue = absl::Seconds(1), .first_token = absl::Seconds(3), .total = absl::Seconds(10)};
  v1::Timings timings;
  SetTimings({ending}, &timings);
  EXPECT_EQ(
      DurationOf(timings.queue()) + DurationOf(timings.prefill()) + DurationOf(timings.decode()),
      absl::Seconds(10));
}

TEST(WireValues, EveryFinishReasonHasANameOnTheWire) {
  using schedule::FinishReason;
  const std::pair<FinishReason, v1::FinishReason> rows[] = {
      {FinishReason::kEos, v1::FINISH_REASON_EOS},
      {FinishReason::kStopString, v1::FINISH_REASON_STOP_STRING},
      {FinishReason::kStopToken, v1::FINISH_REASON_STOP_TOKEN},
      {FinishReason::kMaxTokens, v1::FINISH_REASON_MAX_TOKENS},
      {FinishReason::kContextFull, v1::FINISH_REASON_CONTEXT_FULL},
  };
  for (const auto& [reason, wire] : rows) {
    engine::Ending ending;
    ending.reason = reason;
    v1::ChoiceFinished finished;
    SetChoiceFinished({}, ending, &finished);
    EXPECT_EQ(finished.reason(), wire);
    EXPECT_FALSE(finished.has_stop_token_id());
  }
}

TEST(WireValues, ALoadReportOfAStartingReplicaHasNoPlaces) {
  v1::LoadReport report;
  SetLoadReport(nullptr, Phase::kStarting, {}, &report);
  EXPECT_EQ(report.phase(), v1::REPLICA_PHASE_STARTING);
  EXPECT_EQ(report.new_requests_max(), 0);
}

TEST(WireValues, ALoadReportHasTheControllersNumbers) {
  FakeController controller({.blocks_total = 12});
  ReplicaFacade replica;
  replica.controller = &controller;
  replica.epoch = 3;
  replica.queued_requests_max = 9;
  v1::LoadReport report;
  SetLoadReport(&replica, Phase::kServing,
                {.streams = 2, .first_token_p50 = absl::Milliseconds(1500)}, &report);
  EXPECT_EQ(report.request_latency().streams(), 2);
  EXPECT_EQ(report.request_latency().first_token_p50().seconds(), 1);
  EXPECT_EQ(report.request_latency().first_token_p50().nanos(), 500000000);
  EXPECT_EQ(report.kv_blocks_free(), 12);
  EXPECT_EQ(report.epoch(), 3u);
  EXPECT_EQ(report.new_requests_max(), 9);
  SetLoadReport(&replica, Phase::kDraining, {}, &report);
  EXPECT_TRUE(report.draining());
  EXPECT_EQ(report.new_requests_max(), 0);
}

}  // namespace
}  // namespace trireme::serve
