#include "runtime/balance/execute_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine.pb.h"
#include "runtime/base/error_reason.h"

namespace trireme::balance {
namespace {

using ::testing::ElementsAre;

TEST(ExecuteMessages, AnAttemptCarriesTheRequestAndWhatEarlierAttemptsEmitted) {
  schedule::Request request;
  request.prompt = {5, 6};
  request.sampling.temperature = 0.5f;
  request.sampling.seed = 77;
  request.choice = 2;
  request.stopping.max_tokens = 9;
  request.stopping.stop_strings = {"end"};
  request.delivery.tenant = "a";
  v1::ExecuteRequest wire;
  SetExecuteRequest(request,
                    {.request_id = "b/1",
                     .attempt = 3,
                     .epoch = 4,
                     .emitted = {8, 9},
                     .budget_left = absl::Milliseconds(1500),
                     .lease = "b"},
                    &wire);
  EXPECT_EQ(wire.request_id(), "b/1");
  EXPECT_EQ(wire.attempt(), 3u);
  EXPECT_EQ(wire.epoch(), 4u);
  EXPECT_EQ(wire.lease(), "b");
  EXPECT_EQ(wire.tenant(), "a");
  EXPECT_EQ(wire.seed(), 77u);
  EXPECT_THAT(wire.token_ids(), ElementsAre(5, 6));
  ASSERT_EQ(wire.choices_size(), 1);
  EXPECT_EQ(wire.choices(0).choice(), 2u);
  EXPECT_THAT(wire.choices(0).emitted(), ElementsAre(8, 9));
  EXPECT_EQ(wire.sampling().temperature(), 0.5f);
  EXPECT_EQ(wire.stopping().max_tokens(), 9);
  EXPECT_THAT(wire.stopping().stop_strings(), ElementsAre("end"));
  EXPECT_EQ(wire.budget_left().seconds(), 1);
  EXPECT_EQ(wire.budget_left().nanos(), 500'000'000);
  EXPECT_TRUE(wire.want_text());
}

TEST(ExecuteMessages, AnAttemptWithoutADeadlineHasNoBudget) {
  v1::ExecuteRequest wire;
  SetExecuteRequest(schedule::Request(), {}, &wire);
  EXPECT_FALSE(wire.has_budget_left());
}

TEST(ExecuteMessages, AServingReplicaThatDrainsCountsAsDraining) {
  v1::LoadReport wire;
  wire.set_phase(v1::REPLICA_PHASE_SERVING);
  EXPECT_EQ(LoadReportOf(wire).phase, ReplicaPhase::kServing);
  wire.set_draining(true);
  EXPECT_EQ(LoadReportOf(wire).phase, ReplicaPhase::kDraining);
}

TEST(ExecuteMessages, APhaseOfALaterVersionTakesNoWork) {
  v1::LoadReport wire;
  wire.set_phase(static_cast<v1::ReplicaPhase>(99));
  EXPECT_EQ(LoadReportOf(wire).phase, ReplicaPhase::kStarting);
}

TEST(ExecuteMessages, EndingsKeepWhichStopItWas) {
  v1::ChoiceFinished wire;
  wire.set_reason(v1::FINISH_REASON_STOP_STRING);
  wire.set_stop_string("end");
  const auto ending = EndingOf(wire);
  ASSERT_TRUE(ending.ok());
  EXPECT_EQ(ending->reason, schedule::FinishReason::kStopString);
  EXPECT_EQ(ending->stop_string, "end");
  EXPECT_EQ(ending->stop_token_id, -1);
  wire.set_reason(v1::FINISH_REASON_EOS);
  wire.set_stop_token_id(0);
  EXPECT_EQ(EndingOf(wire)->stop_token_id, 0);
}

TEST(ExecuteMessages, AReasonOfALaterVersionIsAFault) {
  v1::ChoiceFinished wire;
  wire.set_reason(static_cast<v1::FinishReason>(99));
  EXPECT_EQ(ReasonOf(EndingOf(wire).status()), kReasonBug);
}

TEST(ExecuteMessages, FactsNameTheTenantAndThePolicy) {
  schedule::Request request;
  request.prompt = {1};
  request.delivery = {.priority = schedule::Priority::kBatch,
                      .disruption_policy = schedule::DisruptionPolicy::kFail,
                      .tenant = "t",
                      .explain = true};
  request.stopping.max_tokens = 12;
  const RequestFacts facts = FactsOf(request);
  EXPECT_EQ(facts.tenant, "t");
  EXPECT_EQ(facts.priority, Priority::kBatch);
  EXPECT_EQ(facts.disruption_policy, DisruptionPolicy::kFail);
  EXPECT_EQ(facts.max_tokens, 12);
  EXPECT_TRUE(facts.explain);
}

}  // namespace
}  // namespace trireme::balance
