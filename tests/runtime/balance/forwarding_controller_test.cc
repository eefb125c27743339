#include "runtime/balance/forwarding_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "runtime/base/check.h"
#include "runtime/base/error_reason.h"
#include "tests/support/fake_replica.h"
#include "tests/support/served_balancer.h"
#include "tests/support/served_replica.h"

namespace trireme::balance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kPatience = absl::Seconds(20);

std::vector<int32_t> Expected(const std::vector<int32_t>& prompt, int64_t tokens) {
  std::vector<int32_t> ids;
  for (int64_t position = 0; position < tokens; ++position) {
    ids.push_back(FakeController::TokenAt(prompt, 0, position, 300));
  }
  return ids;
}

std::string TextOf(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) {
    text += FakeController::TextOf(id);
  }
  return text;
}

// A stream must be whole: the rules of the wire, all the tokens, all the text.
void ExpectWhole(const StreamRecord& record, int64_t tokens) {
  EXPECT_THAT(record.broken_rules, IsEmpty());
  ASSERT_TRUE(record.result.ok()) << record.result.ToString();
  ASSERT_EQ(record.token_ids.size(), 1u);
  EXPECT_EQ(record.token_ids[0], Expected({1, 2, 3}, tokens));
  EXPECT_EQ(record.texts[0], TextOf(record.token_ids[0]));
  ASSERT_NE(record.finished(), nullptr);
  EXPECT_EQ(record.finished()->usage().generated_tokens(), tokens);
  EXPECT_EQ(record.finished()->usage().prompt_tokens(), 3);
}

FakeAnswer Hang(std::vector<v1::ExecuteEvent> events) {
  return {.events = std::move(events), .hangs = true};
}

FakeAnswer Break(std::vector<v1::ExecuteEvent> events) {
  return {.events = std::move(events), .status = absl::UnavailableError("broken"), .is_bare = true};
}

FakeAnswer Honest(const v1::ExecuteRequest& request, int64_t tokens) {
  return {.events = HonestEvents(request, tokens, /*with_end=*/true)};
}

// A replica that answers each first attempt as `first` says, and later ones honestly: whichever of
// two such replicas is asked first misbehaves, and whichever comes second saves the stream.
FakeReplica::Script OnFirstAttempt(FakeReplica::Script first, int64_t tokens) {
  return [first, tokens](const v1::ExecuteRequest& request) {
    return request.attempt() == 1 ? first(request) : Honest(request, tokens);
  };
}

struct Pair {
  explicit Pair(const FakeReplica::Script& first, int64_t tokens, ForwardingOptions forwarding = {})
      : one(FakeReplica::Start(OnFirstAttempt(first, tokens))),
        two(FakeReplica::Start(OnFirstAttempt(first, tokens))),
        balancer({.replicas = {one->address(), two->address()}, .forwarding = forwarding}) {
    CHECK(balancer.WaitUntilServing(2));
  }

  std::vector<v1::ExecuteRequest> executed() const {
    std::vector<v1::ExecuteRequest> all = one->executed();
    for (const v1::ExecuteRequest& request : two->executed()) {
      all.push_back(request);
    }
    std::sort(all.begin(), all.end(),
              [](const auto& left, const auto& right) { return left.attempt() < right.attempt(); });
    return all;
  }

  std::unique_ptr<FakeReplica> one;
  std::unique_ptr<FakeReplica> two;
  ServedBalancer balancer;
};

ForwardingOptions Impatient() {
  ForwardingOptions options;
  options.core.health.first_token_timeout = absl::Milliseconds(300);
  options.core.health.next_token_timeout = absl::Milliseconds(300);
  return options;
}

TEST(ForwardingController, AStreamThroughABalancerIsTheReplicasOwn) {
  ServedReplica replica;
  ServedBalancer balancer({.replicas = {replica.address()}});
  ASSERT_TRUE(balancer.WaitUntilServing(1));
  const StreamRecord record = Generate(balancer.client(), TokenRequest(20));
  ExpectWhole(record, 20);
  EXPECT_EQ(record.accepted()->fingerprint(), "f1");
  EXPECT_EQ(record.result.trailers.at("trireme-attempts"), "1");
  EXPECT_EQ(record.result.trailers.at("trireme-replica"), "r1");
  EXPECT_THAT(record.result.trailers.at("trireme-timing"), ::testing::HasSubstr("first_token_ms="));
  EXPECT_EQ(record.finished()->disruptions_size(), 0);
}

TEST(ForwardingController, ChoicesGoTheirOwnWays) {
  ServedReplica replica;
  ServedBalancer balancer({.replicas = {replica.address()}});
  ASSERT_TRUE(balancer.WaitUntilServing(1));
  v1::GenerateRequest request = TokenRequest(10);
  request.mutable_sampling()->set_n(3);
  const StreamRecord record = Generate(balancer.client(), request);
  EXPECT_THAT(record.broken_rules, IsEmpty());
  ASSERT_EQ(record.token_ids.size(), 3u);
  for (uint32_t choice = 0; choice < 3; ++choice) {
    for (size_t position = 0; position < 10; ++position) {
      EXPECT_EQ(record.token_ids[choice][position],
                FakeController::TokenAt({1, 2, 3}, choice, static_cast<int64_t>(position), 300));
    }
  }
}

TEST(ForwardingController, WhatARequestAsksForReachesTheReplica) {
  ServedReplica replica;
  ServedBalancer balancer({.replicas = {replica.address()}});
  ASSERT_TRUE(balancer.WaitUntilServing(1));
  v1::GenerateRequest request = TokenRequest(4);
  request.mutable_sampling()->set_temperature(0.5f);
  request.mutable_sampling()->set_top_k(7);
  request.mutable_sampling()->set_seed(99);
  request.mutable_stopping()->add_stop_token_ids(299);
  request.mutable_stopping()->set_ignore_eos(true);
  request.mutable_output()->set_logprobs(0);
  ExpectWhole(Generate(balancer.client(), request), 4);
  const std::vector<schedule::Request> submitted = replica.controller().submitted();
  ASSERT_EQ(submitted.size(), 1u);
  EXPECT_EQ(submitted[0].prompt, (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(submitted[0].sampling.temperature, 0.5f);
  EXPECT_EQ(submitted[0].sampling.top_k, 7);
  EXPECT_EQ(submitted[0].sampling.seed, 99u);
  EXPECT_THAT(submitted[0].stopping.stop_token_ids, ElementsAre(299));
  EXPECT_TRUE(submitted[0].stopping.ignore_eos);
  EXPECT_EQ(submitted[0].stopping.max_tokens, 4);
  EXPECT_TRUE(submitted[0].want_logprobs);
}

TEST(ForwardingController, ACancelledStreamEndsAtTheReplicaToo) {
  ServedReplica replica;
  replica.controller().Hold(true);
  ServedBalancer balancer({.replicas = {replica.address()}});
  ASSERT_TRUE(balancer.WaitUntilServing(1));
  const auto stream = balancer.client().Open(kGenerate, TokenRequest(20).SerializeAsString());
  const absl::Time end = absl::Now() + kPatience;
  while (replica.controller().live_requests() == 0 && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  ASSERT_EQ(replica.controller().live_requests(), 1);
  stream->Cancel();
  stream->Finish();
  EXPECT_TRUE(replica.controller().WaitUntilIdle(kPatience));
}

TEST(ForwardingController, F1_WithoutAReplicaTheAnswerComesAtOnceAndSaysWhenToRetry) {
  ServedBalancer balancer({.replicas = {"127.0.0.1:1"}});
  absl::Duration quickest = absl::InfiniteDuration();
  for (int count = 0; count < 10; ++count) {
    const absl::Time begin = absl::Now();
    const StreamRecord record = Generate(balancer.client(), TokenRequest(5));
    quickest = std::min(quickest, absl::Now() - begin);
    EXPECT_EQ(record.result.code, absl::StatusCode::kUnavailable);
    EXPECT_EQ(record.result.reason, kReasonNoReplica) << record.result.ToString();
    EXPECT_TRUE(record.result.has_retry_info);
  }
  EXPECT_LT(quickest, absl::Milliseconds(50));
}

TEST(ForwardingController, F1_AStartingOrDrainingReplicaIsNamedAsSuch) {
  const struct {
    v1::ReplicaPhase phase;
    absl::string_view reason;
  } cases[] = {{v1::REPLICA_PHASE_STARTING, kReasonStarting},
               {v1::REPLICA_PHASE_DRAINING, kReasonDraining}};
  for (const auto& [phase, reason] : cases) {
    const auto replica = FakeReplica::Start([](const auto&) { return FakeAnswer(); });
    replica->SetReports([phase = phase](uint64_t number) {
      v1::LoadReport report = FakeReplica::ServingReport(number);
      report.set_phase(phase);
      return report;
    });
    ServedBalancer balancer({.replicas = {replica->address()}});
    const absl::Time end = absl::Now() + kPatience;
    while (balancer.controller().Replicas()[0].report.report_seq == 0 && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    const StreamRecord record = Generate(balancer.client(), TokenRequest(5));
    EXPECT_EQ(record.result.reason, reason) << record.result.ToString();
    EXPECT_TRUE(record.result.has_retry_info);
  }
}

TEST(ForwardingController, F2_RequestsThatAreAtFaultOpenNoBreaker) {
  const auto replica = FakeReplica::Start([](const auto&) {
    return FakeAnswer{.status = WithReason(absl::InvalidArgumentError("the prompt is too long"),
                                           kReasonPromptTooLong)};
  });
  ServedBalancer balancer({.replicas = {replica->address()}});
  ASSERT_TRUE(balancer.WaitUntilServing(1));
  for (int count = 0; count < 200; ++count) {
    const StreamRecord record = Generate(balancer.client(), TokenRequest(5));
    ASSERT_EQ(record.result.code, absl::StatusCode::kInvalidArgument) << record.result.ToString();
    ASSERT_EQ(record.result.reason, kReasonPromptTooLong);
  }
  EXPECT_EQ(balancer.controller().Replicas()[0].breaker, "closed");
  EXPECT_EQ(balancer.controller().counts().retries_charged, 0);
}

TEST(ForwardingController, F3_AReplicaThatNeverAnswersLosesTheRequest) {
  Pair pair([](const auto&) { return Hang({}); }, 6, Impatient());
  const StreamRecord record = Generate(pair.balancer.client(), TokenRequest(6));
  ExpectWhole(record, 6);
  EXPECT_EQ(record.result.trailers.at("trireme-attempts"), "2");
}

TEST(ForwardingController, F3_AReplicaThatStallsLosesTheStream) {
  Pair pair([](const auto& request) { return Hang(HonestEvents(request, 3, false)); }, 6,
            Impatient());
  const StreamRecord record = Generate(pair.balancer.client(), TokenRequest(6));
  ExpectWhole(record, 6);
  ASSERT_EQ(record.finished()->disruptions_size(), 1);
  const v1::Disruption& disruption = record.finished()->disruptions(0);
  EXPECT_NE(disruption.from_replica(), disruption.to_replica());
  EXPECT_GE(disruption.gap().nanos(), 300'000'000);
  const std::vector<v1::ExecuteRequest> executed = pair.executed();
  ASSERT_EQ(executed.size(), 2u);
  EXPECT_EQ(executed[0].request_id(), executed[1].request_id());
  EXPECT_EQ(executed[1].attempt(), 2u);
  EXPECT_EQ(executed[1].choices(0).emitted_size(), 3);
}

TEST(ForwardingController, F3_AnswersOutOfOrderLoseTheStreamAndNoneOfTheirTokensArrives) {
  using Spoil = std::function<void(std::vector<v1::ExecuteEvent>*)>;
  const std::vector<std::pair<std::string, Spoil>> cases = {
      {"a gap in seq", [](auto* events) { events->at(3).set_seq(9); }},
      {"seq repeats", [](auto* events) { events->at(3).set_seq(3); }},
      {"a gap in positions",
       [](auto* events) { events->at(3).mutable_tokens()->set_first_position(7); }},
      {"a position repeats",
       [](auto* events) { events->at(3).mutable_tokens()->set_first_position(1); }},
      {"another choice", [](auto* events) { events->at(3).mutable_tokens()->set_choice(4); }},
      {"text without tokens",
       [](auto* events) { events->at(3).mutable_tokens()->clear_token_ids(); }},
      {"tokens after the end",
       [](auto* events) {
         v1::ExecuteEvent late = events->at(3);
         events->at(3).mutable_choice_finished()->set_reason(v1::FINISH_REASON_EOS);
         late.set_seq(5);
         events->at(4) = late;
       }},
      {"an unknown reason to end",
       [](auto* events) {
         events->at(3).mutable_choice_finished()->set_reason(v1::FINISH_REASON_UNSPECIFIED);
       }},
  };
  for (const auto& [name, spoil] : cases) {
    SCOPED_TRACE(name);
    Pair pair(
        [&spoil = spoil](const auto& request) {
          std::vector<v1::ExecuteEvent> events = HonestEvents(request, 6, true);
          spoil(&events);
          return FakeAnswer{.events = std::move(events)};
        },
        6);
    const StreamRecord record = Generate(pair.balancer.client(), TokenRequest(6));
    ExpectWhole(record, 6);
    EXPECT_EQ(record.result.trailers.at("trireme-attempts"), "2");
  }
}

TEST(ForwardingController, AConnectionThatBreaksInMidStreamIsNotSeenByTheClient) {
  Pair pair([](const auto& request) { return Break(HonestEvents(request, 4, false)); }, 9);
  const StreamRecord record = Generate(pair.balancer.client(), TokenRequest(9));
  ExpectWhole(record, 9);
  ASSERT_EQ(record.finished()->disruptions_size(), 1);
  EXPECT_EQ(record.finished()->disruptions(0).reason(), kReasonReplicaLost);
  EXPECT_EQ(record.finished()->usage().recomputed_tokens(), 4);
}

TEST(ForwardingController, AReplicaLostBetweenItsLastTwoWordsHasFinished) {
  Pair pair(
      [](const auto& request) {
        std::vector<v1::ExecuteEvent> events = HonestEvents(request, 5, true);
        events.pop_back();
        events.back().mutable_choice_finished()->set_text_tail("~");
        return Break(std::move(events));
      },
      5);
  const StreamRecord record = Generate(pair.balancer.client(), TokenRequest(5));
  EXPECT_THAT(record.broken_rules, IsEmpty());
  ASSERT_TRUE(record.result.ok()) << record.result.ToString();
  EXPECT_EQ(record.token_ids[0], Expected({1, 2, 3}, 5));
  EXPECT_EQ(record.texts[0], TextOf(record.token_ids[0]) + "~");
  EXPECT_EQ(pair.executed().size(), 1u);
}

TEST(ForwardingController, AReplicaLostAfterItsLastTokenIsAskedAgainForTheEnd) {
  Pair pair([](const auto& request) { return Break(HonestEvents(request, 5, false)); }, 5);
  const StreamRecord record = Generate(pair.balancer.client(), TokenRequest(5));
  ExpectWhole(record, 5);
  EXPECT_EQ(pair.executed().back().choices(0).emitted_size(), 5);
}

TEST(ForwardingController, AClientThatWantsToFailIsToldOfTheLoss) {
  Pair pair([](const auto& request) { return Break(HonestEvents(request, 4, false)); }, 9);
  v1::GenerateRequest request = TokenRequest(9);
  request.mutable_delivery()->set_disruption_policy(v1::DISRUPTION_POLICY_FAIL);
  const StreamRecord record = Generate(pair.balancer.client(), request);
  EXPECT_EQ(record.result.code, absl::StatusCode::kUnavailable);
  EXPECT_EQ(record.result.reason, kReasonReplicaLost);
  EXPECT_EQ(record.token_ids[0], Expected({1, 2, 3}, 4));
}

TEST(ForwardingController, F4_ReportsThatCannotBeTrueAreRefusedAndRequestsStillServed) {
  const auto liar = FakeReplica::Start([](const auto& request) { return Honest(request, 5); });
  ServedBalancer balancer({.replicas = {liar->address()}});
  ASSERT_TRUE(balancer.WaitUntilServing(1));
  liar->SetReports([](uint64_t number) {
    v1::LoadReport report = FakeReplica::ServingReport(number);
    switch (number % 4) {
      case 0:
        report.set_queued_tokens(-5);
        break;
      case 1:
        report.set_prefill_tokens_per_second(std::numeric_limits<double>::quiet_NaN());
        break;
      case 2:
        report.set_report_seq(1);
        break;
      default:
        break;  // one in four is true
    }
    return report;
  });
  const absl::Time end = absl::Now() + kPatience;
  while (balancer.controller().counts().reports_refused < 3 && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_GE(balancer.controller().counts().reports_refused, 3);
  ExpectWhole(Generate(balancer.client(), TokenRequest(5)), 5);
}

TEST(ForwardingController, F7_ARequestThatKillsItsReplicasStopsAtTwo) {
  std::vector<std::unique_ptr<FakeReplica>> replicas;
  ServedBalancerOptions options;
  for (int index = 0; index < 4; ++index) {
    replicas.push_back(FakeReplica::Start(
        [](const auto& request) { return Break(HonestEvents(request, 0, false)); }));
    options.replicas.push_back(replicas.back()->address());
  }
  ServedBalancer balancer(options);
  ASSERT_TRUE(balancer.WaitUntilServing(4));
  const auto executed = [&replicas] {
    size_t count = 0;
    for (const auto& replica : replicas) {
      count += replica->executed().size();
    }
    return count;
  };
  const StreamRecord record = Generate(balancer.client(), TokenRequest(5));
  EXPECT_EQ(record.result.code, absl::StatusCode::kInternal) << record.result.ToString();
  EXPECT_EQ(record.result.reason, kReasonPoisonSuspect);
  EXPECT_EQ(executed(), 2u);
  const StreamRecord again = Generate(balancer.client(), TokenRequest(5));
  EXPECT_EQ(again.result.reason, kReasonPoisonSuspect);
  EXPECT_EQ(executed(), 2u) << "the quarantined prompt was sent again";
}

TEST(ForwardingController, F18_TheClientSeesOneAttemptOnlyWhenAnOldOneGoesOn) {
  Pair pair([](const auto& request) { return Hang(HonestEvents(request, 3, false)); }, 40,
            Impatient());
  const StreamRecord record = Generate(pair.balancer.client(), TokenRequest(40));
  ExpectWhole(record, 40);
  // And the old attempt is told to end.
  FakeReplica& old = pair.one->executed().at(0).attempt() == 1 ? *pair.one : *pair.two;
  EXPECT_TRUE(old.WaitUntilCancelled(1, kPatience));
}

TEST(ForwardingController, ASilentReplicaIsLostWithItsStreams) {
  ForwardingOptions forwarding;
  forwarding.silence_limit = absl::Milliseconds(400);
  forwarding.core.health.stale_after = absl::Milliseconds(200);
  forwarding.core.health.suspect_after = absl::Milliseconds(400);
  Pair pair([](const auto& request) { return Hang(HonestEvents(request, 3, false)); }, 8,
            forwarding);
  const auto stream = pair.balancer.client().Open(kGenerate, TokenRequest(8).SerializeAsString());
  const absl::Time end = absl::Now() + kPatience;
  while (pair.executed().empty() && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  FakeReplica& holder = pair.one->executed().empty() ? *pair.two : *pair.one;
  holder.FallSilent();
  ExpectWhole(ReadStream(*stream), 8);
}

TEST(ForwardingController, PrioritiesAndTenantsAreTakenAndABadTenantIsNamed) {
  ServedReplica replica;
  ServedBalancer balancer({.replicas = {replica.address()}});
  ASSERT_TRUE(balancer.WaitUntilServing(1));
  v1::GenerateRequest request = TokenRequest(5);
  request.mutable_delivery()->set_priority(v1::PRIORITY_BATCH);
  request.mutable_delivery()->set_disruption_policy(v1::DISRUPTION_POLICY_EXACT_OR_FAIL);
  ExpectWhole(Generate(balancer.client(), request), 5);
  // A lone replica still refuses by name.
  EXPECT_EQ(Generate(replica.client(), request).result.reason, kReasonFieldNotSupported);
}

TEST(ForwardingController, ADrainedBalancerRefusesAndFinishesWhatRuns) {
  ServedReplica replica;
  replica.controller().Hold(true);
  ServedBalancer balancer({.replicas = {replica.address()}});
  ASSERT_TRUE(balancer.WaitUntilServing(1));
  auto stream = balancer.client().Open(kGenerate, TokenRequest(5).SerializeAsString());
  const absl::Time end = absl::Now() + kPatience;
  while (replica.controller().live_requests() == 0 && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  absl::Notification idle;
  balancer.controller().Drain([&idle] { idle.Notify(); });
  EXPECT_EQ(Generate(balancer.client(), TokenRequest(5)).result.reason, kReasonDraining);
  EXPECT_FALSE(idle.HasBeenNotified());
  replica.controller().Hold(false);
  ExpectWhole(ReadStream(*stream), 5);
  EXPECT_TRUE(idle.WaitForNotificationWithTimeout(kPatience));
}

}  // namespace
}  // namespace trireme::balance
