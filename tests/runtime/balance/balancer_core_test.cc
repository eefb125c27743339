#include "runtime/balance/balancer_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/error_reason.h"

namespace trireme::balance {
namespace {

class BalancerCoreTest : public ::testing::Test {
 protected:
  // One serving replica more, past its slow start.
  ReplicaKey AddReplica(const std::string& fingerprint = "f") {
    const ReplicaKey key =
        core_->OnReplicaAdded(absl::StrCat("r", replicas_.size() + 1), now_, &actions_);
    replicas_.push_back({key, 1, 0, fingerprint});
    Report(key);
    return key;
  }

  LoadReport MakeReport(ReplicaKey key) {
    Known& known = KnownOf(key);
    LoadReport report;
    report.epoch = known.epoch;
    report.report_seq = ++known.seq;
    report.phase = ReplicaPhase::kServing;
    report.prefill_tokens_per_second = 1000;
    report.new_requests_max = 100;
    report.fingerprint = known.fingerprint;
    return report;
  }

  void Report(ReplicaKey key) {
    ASSERT_TRUE(core_->OnLoadReport(key, MakeReport(key), now_, &actions_).ok());
  }

  void ReportAll() {
    for (const Known& known : std::vector<Known>(replicas_)) {
      Report(known.key);
    }
  }

  // The replica comes back as a new process.
  void Restart(ReplicaKey key, const std::string& fingerprint = "f") {
    Known& known = KnownOf(key);
    ++known.epoch;
    known.seq = 0;
    known.fingerprint = fingerprint;
    Report(key);
  }

  absl::StatusOr<RequestKey> Ask(int32_t prompt, RequestFacts facts = {}) {
    const std::vector<int32_t> tokens(40, prompt);
    facts.prompt = tokens;
    facts.max_tokens = std::max<int64_t>(facts.max_tokens, 100);
    return core_->OnRequest(facts, now_, &actions_);
  }

  // The actions since the last call, of one kind.
  template <typename Kind>
  std::vector<Kind> Take() {
    std::vector<Kind> taken;
    for (const Action& action : actions_) {
      if (const Kind* one = std::get_if<Kind>(&action); one != nullptr) {
        taken.push_back(*one);
      }
    }
    actions_.clear();
    return taken;
  }

  StartAttempt Started() {
    const std::vector<StartAttempt> starts = Take<StartAttempt>();
    EXPECT_EQ(starts.size(), 1u);
    return starts.empty() ? StartAttempt{} : starts[0];
  }

  void Accept(const StartAttempt& start, const std::string& fingerprint = "f") {
    core_->OnAccepted(start.request, start.attempt, fingerprint, 0, now_, &actions_);
  }

  void Tokens(const StartAttempt& start, int64_t first_position, int count) {
    core_->OnTokens(start.request, start.attempt, first_position,
                    std::vector<int32_t>(static_cast<size_t>(count), 7), now_, &actions_);
  }

  void Lose(const StartAttempt& start) {
    core_->OnAttemptFailed(start.request, start.attempt, absl::UnavailableError("Socket closed"),
                           absl::ZeroDuration(), now_, &actions_);
  }

  // Lets time pass with fresh reports of all replicas.
  void Pass(absl::Duration duration) {
    for (const absl::Time end = now_ + duration; now_ < end;) {
      now_ += std::min(absl::Milliseconds(100), end - now_);
      ReportAll();
      core_->OnTick(now_, &actions_);
    }
  }

  struct Known {
    ReplicaKey key;
    uint64_t epoch;
    uint64_t seq;
    std::string fingerprint;
  };
  Known& KnownOf(ReplicaKey key) {
    for (Known& known : replicas_) {
      if (known.key == key) return known;
    }
    ADD_FAILURE() << "no replica " << key;
    return replicas_[0];
  }

  BalancerOptions options_{.pick = {.explore = 0}};
  std::unique_ptr<BalancerCore> core_ = std::make_unique<BalancerCore>(options_);
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  Actions actions_;
  std::vector<Known> replicas_;
};

TEST_F(BalancerCoreTest, ARequestRunsAndEndsOnce) {
  AddReplica();
  const RequestKey key = Ask(1).value();
  const StartAttempt start = Started();
  EXPECT_EQ(start.request, key);
  EXPECT_EQ(start.attempt, 1u);
  EXPECT_EQ(start.epoch, 1u);
  Accept(start);
  EXPECT_EQ(Take<AcceptRequest>().size(), 1u);
  Tokens(start, 0, 3);
  const auto delivered = Take<DeliverTokens>();
  ASSERT_EQ(delivered.size(), 1u);
  EXPECT_EQ(delivered[0].first_position, 0);
  EXPECT_EQ(delivered[0].tokens, 3);
  core_->OnFinished(key, 1, 3, now_, &actions_);
  EXPECT_EQ(Take<FinishRequest>().size(), 1u);
  EXPECT_EQ(core_->live_requests(), 0);
  core_->OnFinished(key, 1, 3, now_, &actions_);
  core_->OnCancel(key, now_, &actions_);
  EXPECT_TRUE(actions_.empty());
  EXPECT_EQ(core_->NextTick(), absl::InfiniteFuture());  // idle costs nothing
}

TEST_F(BalancerCoreTest, F1_WithoutAServingReplicaTheErrorSaysWhyAndWhenToRetry) {
  EXPECT_EQ(ReasonOf(Ask(1).status()), kReasonNoReplica);
  const ReplicaKey replica = core_->OnReplicaAdded("r1", now_, &actions_);
  replicas_.push_back({replica, 1, 0, "f"});
  // Right after a start the first report is waited for, but not for long.
  EXPECT_TRUE(Ask(1).ok());
  EXPECT_EQ(Take<QueueRequest>().size(), 1u);
  now_ += options_.health.first_report_wait;
  EXPECT_LE(core_->NextTick(), now_);
  core_->OnTick(now_, &actions_);
  EXPECT_EQ(ReasonOf(Take<FailRequest>().at(0).status), kReasonNoReplica);
  for (const auto& [phase, reason] : {std::make_pair(ReplicaPhase::kStarting, kReasonStarting),
                                      std::make_pair(ReplicaPhase::kDraining, kReasonDraining),
                                      std::make_pair(ReplicaPhase::kLost, kReasonNoReplica)}) {
    LoadReport report = MakeReport(replica);
    report.phase = phase;
    ASSERT_TRUE(core_->OnLoadReport(replica, report, now_, &actions_).ok());
    const absl::Status status = Ask(1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(ReasonOf(status), reason);
    EXPECT_GT(RetryDelayOf(status), absl::ZeroDuration());
  }
  EXPECT_TRUE(actions_.empty());
}

TEST_F(BalancerCoreTest, F2_BadRequestsOpenNoBreaker) {
  AddReplica();
  AddReplica();
  for (int request = 0; request < 10000; ++request) {
    Ask(request).value();
    const StartAttempt start = Started();
    core_->OnAttemptFailed(start.request, start.attempt, absl::InvalidArgumentError("bad"),
                           absl::ZeroDuration(), now_, &actions_);
    ASSERT_EQ(Take<FailRequest>().size(), 1u);
  }
  for (const ReplicaView& replica : core_->Replicas(now_)) {
    EXPECT_EQ(replica.breaker, "closed");
  }
}

TEST_F(BalancerCoreTest, F3_RepeatsGapsAndTooManyTokensMoveTheRequest) {
  AddReplica();
  AddReplica();
  for (const auto& [position, count] :
       {std::make_pair(0, 1), std::make_pair(3, 1), std::make_pair(2, 99)}) {
    Ask(1).value();
    const StartAttempt first = Started();
    Accept(first);
    Tokens(first, 0, 2);
    Take<DeliverTokens>();
    Tokens(first, position, count);
    EXPECT_EQ(core_->Find(first.request)->emitted_tokens, 2);
    const auto cancels = Take<CancelAttempt>();
    ASSERT_EQ(cancels.size(), 1u);
    EXPECT_EQ(cancels[0].attempt, 1u);
    Pass(absl::Seconds(1));  // past the pause before a retry
    const StartAttempt second = Started();
    EXPECT_NE(second.replica, first.replica);
    EXPECT_EQ(second.emitted, (std::vector<int32_t>{7, 7}));
    core_->OnCancel(first.request, now_, &actions_);
    Take<FailRequest>();
  }
  EXPECT_EQ(core_->counts().protocol_faults, 3);
}

TEST_F(BalancerCoreTest, F3_AReplicaThatNeverAnswersLosesTheRequest) {
  AddReplica();
  AddReplica();
  Ask(1).value();
  const StartAttempt first = Started();
  Pass(options_.health.first_token_timeout - absl::Seconds(1));
  EXPECT_TRUE(Take<StartAttempt>().empty());
  Pass(absl::Seconds(2));
  const StartAttempt second = Started();
  EXPECT_NE(second.replica, first.replica);
  Accept(second);
  Tokens(second, 0, 1);
  Take<DeliverTokens>();
  Pass(options_.health.next_token_timeout + absl::Seconds(2));  // a token a minute is too slow
  EXPECT_EQ(Started().replica, first.replica);
}

TEST_F(BalancerCoreTest, F3_TokensAfterTheEndReachNobody) {
  AddReplica();
  const RequestKey key = Ask(1).value();
  const StartAttempt start = Started();
  Accept(start);
  Tokens(start, 0, 1);
  core_->OnFinished(key, 1, 1, now_, &actions_);
  Take<FinishRequest>();
  Tokens(start, 1, 1);
  EXPECT_TRUE(actions_.empty());
  EXPECT_EQ(core_->counts().stale_answers, 1);
}

TEST_F(BalancerCoreTest, ATokenThatWasLostOnTheWayIsSeenAtTheEnd) {
  AddReplica();
  AddReplica();
  const RequestKey key = Ask(1).value();
  const StartAttempt start = Started();
  Accept(start);
  Tokens(start, 0, 1);
  core_->OnFinished(key, 1, /*generated_tokens=*/2, now_, &actions_);
  EXPECT_TRUE(Take<FinishRequest>().empty());
  Pass(absl::Seconds(1));
  EXPECT_EQ(Started().emitted.size(), 1u);
}

TEST_F(BalancerCoreTest, F18_AnOlderAttemptReachesNobody) {
  AddReplica();
  AddReplica();
  const RequestKey key = Ask(1).value();
  const StartAttempt first = Started();
  Accept(first);
  Tokens(first, 0, 2);
  Take<DeliverTokens>();
  // Its replica is silent for 3 s while the other one reports; the partition ends later.
  const ReplicaKey other = first.replica == replicas_[0].key ? replicas_[1].key : replicas_[0].key;
  for (int tenth = 0; tenth <= 31; ++tenth) {
    now_ += absl::Milliseconds(100);
    Report(other);
    core_->OnTick(now_, &actions_);
  }
  const StartAttempt second = Started();
  EXPECT_EQ(second.replica, other);
  EXPECT_EQ(second.attempt, 2u);
  Accept(second);
  Take<AcceptRequest>();
  Tokens(first, 2, 5);
  core_->OnFinished(key, first.attempt, 7, now_, &actions_);
  EXPECT_TRUE(actions_.empty());
  Tokens(second, 2, 1);
  EXPECT_EQ(Take<DeliverTokens>().size(), 1u);
  EXPECT_EQ(core_->Find(key)->emitted_tokens, 3);
}

TEST_F(BalancerCoreTest, ALossBeforeInAndAfterTheStreamMovesTheRequestAtOnce) {
  AddReplica();
  AddReplica();
  Ask(1).value();
  const StartAttempt first = Started();
  Lose(first);  // before it was accepted
  const StartAttempt second = Started();
  EXPECT_NE(second.replica, first.replica);
  EXPECT_TRUE(second.emitted.empty());
  ReportAll();
  Accept(second);
  Tokens(second, 0, 20);
  Take<DeliverTokens>();
  Lose(second);
  const StartAttempt third = Started();
  EXPECT_EQ(third.emitted.size(), 20u);
  Accept(third);
  core_->OnFinished(third.request, third.attempt, 0, now_, &actions_);
  const auto finished = Take<FinishRequest>();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].story.attempts, 3u);
  EXPECT_EQ(finished[0].story.recomputed_tokens, 20);
  ASSERT_EQ(finished[0].story.disruptions.size(), 2u);
  EXPECT_EQ(finished[0].story.disruptions[1].from, second.replica);
  EXPECT_EQ(finished[0].story.disruptions[1].to, third.replica);
}

TEST_F(BalancerCoreTest, ARequestUnderWayWaitsForItsReplicaToComeBack) {
  const ReplicaKey replica = AddReplica();
  Ask(1).value();
  const StartAttempt first = Started();
  Accept(first);
  Tokens(first, 0, 2);
  Lose(first);
  EXPECT_TRUE(Take<StartAttempt>().empty());
  now_ += absl::Seconds(20);
  core_->OnTick(now_, &actions_);
  EXPECT_TRUE(actions_.empty());
  Restart(replica);
  const StartAttempt second = Started();
  EXPECT_EQ(second.epoch, 2u);
  EXPECT_EQ(second.emitted.size(), 2u);
}

TEST_F(BalancerCoreTest, F11_AnotherModelUnderTheSameNameContinuesNothing) {
  const ReplicaKey replica = AddReplica();
  Ask(1).value();
  Ask(2).value();
  const auto starts = Take<StartAttempt>();
  ASSERT_EQ(starts.size(), 2u);
  for (const StartAttempt& start : starts) {
    Accept(start);
  }
  Tokens(starts[0], 0, 2);
  actions_.clear();
  Restart(replica, "another");
  // The one with tokens cannot go on exactly; the one without begins anew.
  Actions actions = actions_;
  const auto failed = Take<FailRequest>();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].request, starts[0].request);
  EXPECT_EQ(ReasonOf(failed[0].status), kReasonExactResumeImpossible);
  actions_ = std::move(actions);
  EXPECT_EQ(Started().request, starts[1].request);
}

TEST_F(BalancerCoreTest, TheFingerprintOfTheAnswerCountsNotTheOneOfTheReport) {
  AddReplica();
  AddReplica();
  Ask(1).value();
  const StartAttempt first = Started();
  Accept(first);
  Tokens(first, 0, 2);
  Take<DeliverTokens>();
  Lose(first);
  const StartAttempt second = Started();
  Accept(second, "another");
  EXPECT_EQ(Take<CancelAttempt>().size(), 1u);
  Tokens(second, 2, 1);
  EXPECT_TRUE(Take<DeliverTokens>().empty());
}

TEST_F(BalancerCoreTest, PoliciesOfDisruptionAreKept) {
  AddReplica();
  AddReplica("another");
  for (const auto& [policy, reason] :
       {std::make_pair(DisruptionPolicy::kFail, kReasonReplicaLost),
        std::make_pair(DisruptionPolicy::kExactOrFail, kReasonExactResumeImpossible)}) {
    ReportAll();
    Ask(1, {.disruption_policy = policy}).value();
    StartAttempt start = Started();
    Lose(start);  // nothing delivered: nobody notices
    start = Started();
    Accept(start, KnownOf(start.replica).fingerprint);
    Tokens(start, 0, 20);
    Take<DeliverTokens>();
    Lose(start);
    const auto failed = Take<FailRequest>();
    ASSERT_EQ(failed.size(), 1u);
    EXPECT_EQ(ReasonOf(failed[0].status), reason);
    EXPECT_GT(RetryDelayOf(failed[0].status), absl::ZeroDuration());
    Pass(absl::Seconds(11));
  }
}

// The index is a guess: a replica that has nothing of it cached says so at each request, and is
// believed less and less; every request is sent somewhere and ends well.
TEST_F(BalancerCoreTest, F6_GuessesThatDoNotComeTrueMisleadNoPick) {
  AddReplica();
  AddReplica();
  for (int turn = 0; turn < 200; ++turn) {
    Pass(absl::Milliseconds(100));
    actions_.clear();
    RequestFacts facts;
    facts.explain = true;
    const RequestKey key = Ask(/*prompt=*/1, facts).value();
    const StartAttempt start = Started();
    EXPECT_EQ(start.request, key);
    EXPECT_TRUE(start.replica == replicas_[0].key || start.replica == replicas_[1].key);
    core_->OnAccepted(key, 1, "f", /*cached_tokens=*/turn % 3 == 0 ? -5 : 0, now_, &actions_);
    Tokens(start, 0, 1);
    core_->OnFinished(key, 1, 1, now_, &actions_);
    EXPECT_EQ(Take<FinishRequest>().size(), 1u);
    if (turn == 1) {  // two blocks of the 40 tokens that were sent before
      EXPECT_THAT(start.explanation, ::testing::HasSubstr("cached_tokens=32 "));
    } else if (turn == 199) {
      EXPECT_THAT(start.explanation,
                  ::testing::Not(::testing::ContainsRegex("cached_tokens=([4-9]|[1-9][0-9])")));
    }
  }
}

TEST_F(BalancerCoreTest, F7_ARequestThatKillsItsReplicasStopsAfterTwoAndIsQuarantined) {
  for (int replica = 0; replica < 4; ++replica) {
    AddReplica();
  }
  Ask(13).value();
  for (int death = 0; death < 2; ++death) {
    const StartAttempt start = Started();
    Accept(start);
    Take<AcceptRequest>();
    Lose(start);
  }
  const auto failed = Take<FailRequest>();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ReasonOf(failed[0].status), kReasonPoisonSuspect);
  EXPECT_EQ(ReasonOf(Ask(13).status()), kReasonPoisonSuspect);
  EXPECT_TRUE(Ask(14).ok());
  now_ += absl::Minutes(10);
  ReportAll();
  EXPECT_TRUE(Ask(13).ok());
}

TEST_F(BalancerCoreTest, F7_OneDeathCountsOnceHoweverOftenItIsFound) {
  const ReplicaKey replica = AddReplica();
  Ask(1).value();
  StartAttempt start = Started();
  Accept(start);
  Lose(start);
  Report(replica);  // it was only a connection: the same epoch goes on
  start = Started();
  core_->OnAttemptFailed(start.request, start.attempt,
                         WithReason(absl::UnavailableError("a rank died"), kReasonRankLost),
                         absl::ZeroDuration(), now_, &actions_);
  EXPECT_TRUE(Take<FailRequest>().empty());
}

TEST_F(BalancerCoreTest, F7_AnInnocentThatRanWellBetweenTwoDeathsGoesOn) {
  AddReplica();
  AddReplica();
  Ask(1).value();
  StartAttempt start = Started();
  for (int death = 0; death < 3; ++death) {
    ReportAll();
    Accept(start);
    Tokens(start, death * 4, 4);
    actions_.clear();
    Lose(start);
    start = Started();
  }
  EXPECT_EQ(start.emitted.size(), 12u);
}

TEST_F(BalancerCoreTest, F7_TokensOfAllAttemptsSinceTheLastDeathCount) {
  AddReplica();
  AddReplica();
  Ask(1).value();
  StartAttempt start = Started();
  Accept(start);
  actions_.clear();
  Lose(start);
  start = Started();
  Restart(replicas_[0].key == start.replica ? replicas_[1].key : replicas_[0].key);
  Accept(start);
  Tokens(start, 0, 3);
  actions_.clear();
  core_->OnAttemptFailed(start.request, start.attempt, absl::AbortedError("pre-empted"),
                         absl::ZeroDuration(), now_, &actions_);
  Pass(absl::Seconds(1));
  start = Started();
  Accept(start);
  Tokens(start, 3, 1);
  actions_.clear();
  Lose(start);
  EXPECT_TRUE(Take<FailRequest>().empty());
}

TEST_F(BalancerCoreTest, F7_WhoOnlyWaitedOnAReplicaThatDiedHasHalfTheBlame) {
  AddReplica();
  AddReplica();
  Ask(1).value();
  for (int death = 0; death < 3; ++death) {
    const StartAttempt start = Started();
    Lose(start);
    Restart(start.replica);
    Pass(absl::Seconds(2));
  }
  Lose(Started());
  const auto failed = Take<FailRequest>();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(ReasonOf(failed[0].status), kReasonPoisonSuspect);
}

TEST_F(BalancerCoreTest, F7_ALostConnectionToAReplicaThatGoesOnIsNoDeath) {
  AddReplica();
  AddReplica();
  Ask(1).value();
  for (int loss = 0; loss < 3; ++loss) {
    const StartAttempt start = Started();
    Accept(start);
    actions_.clear();
    Lose(start);
    Report(start.replica);
    Pass(absl::Seconds(1));
  }
  EXPECT_TRUE(Take<FailRequest>().empty());
}

TEST_F(BalancerCoreTest, F12_WhenAllFailTheRateUpstreamStaysNearTheRateOfClients) {
  for (int replica = 0; replica < 4; ++replica) {
    AddReplica();
  }
  Pass(absl::Seconds(1));
  const int64_t before = core_->counts().attempts;
  int64_t asked = 0;
  for (int turn = 0; turn < 3000; ++turn) {  // 30 s of 100 a second
    now_ += absl::Milliseconds(10);
    if (turn % 10 == 0) {
      ReportAll();
    }
    asked += Ask(turn).ok() ? 1 : 0;
    core_->OnTick(now_, &actions_);
    for (const StartAttempt& start : Take<StartAttempt>()) {
      core_->OnAttemptFailed(start.request, start.attempt, absl::InternalError("x"),
                             absl::ZeroDuration(), now_, &actions_);
    }
  }
  EXPECT_GT(asked, 2500);
  EXPECT_LE(core_->counts().attempts - before, 1.1 * static_cast<double>(asked) + 3);
  // They answer again: within 2 s so does the balancer.
  Pass(absl::Seconds(2));
  actions_.clear();
  Ask(999999).value();
  EXPECT_FALSE(Take<StartAttempt>().empty());
}

// Settings change with every other request, queued and running ones alike: each has its one end.
TEST_F(BalancerCoreTest, F15_SettingsThatChangeUnderLoadLoseNoRequest) {
  AddReplica();
  AddReplica();
  int64_t asked = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    BalancerOptions changed = options_;
    changed.pick.bounded_load = turn % 2 == 0 ? 1 : 100;
    changed.pick.explore = turn % 3 == 0 ? 1 : 0;
    changed.health.stale_after = turn % 2 == 0 ? absl::Milliseconds(500) : absl::Seconds(3);
    changed.admission.queued_requests_max = turn % 5 == 0 ? 1 : 1000;
    changed.retry.retries_per_request = turn % 4;
    changed.retry.window = absl::Hours(1);  // is not taken over
    core_->Reconfigure(changed);
    asked += Ask(turn).ok() ? 1 : 0;
    now_ += absl::Milliseconds(10);
    if (turn % 10 == 0) {
      ReportAll();
    }
    core_->OnTick(now_, &actions_);
    const Actions actions = std::exchange(actions_, {});
    for (const Action& action : actions) {
      if (const auto* start = std::get_if<StartAttempt>(&action)) {
        Accept(*start);
        if (turn % 7 == 0) {
          Lose(*start);
        } else {
          Tokens(*start, static_cast<int64_t>(start->emitted.size()), 1);
          core_->OnFinished(start->request, start->attempt, 1, now_, &actions_);
        }
      }
    }
  }
  Pass(absl::Seconds(90));
  EXPECT_GT(asked, 1000);
  EXPECT_EQ(core_->live_requests(), 0);
  EXPECT_EQ(core_->counts().finished + core_->counts().failed, asked);
}

// What changes is what the next decision sees.
TEST_F(BalancerCoreTest, F15_AShorterQueueShedsTheNextRequest) {
  AddReplica();
  for (int request = 0; request < 20; ++request) {
    Ask(request).value();
  }
  const int64_t queued = core_->queued_requests();
  EXPECT_GT(queued, 2);
  BalancerOptions changed = options_;
  changed.admission.queued_requests_max = 2;
  core_->Reconfigure(changed);
  EXPECT_EQ(core_->queued_requests(), queued);  // who waits already stays
  EXPECT_EQ(ReasonOf(Ask(99).status()), kReasonOverloaded);
  core_->Reconfigure(options_);
  EXPECT_TRUE(Ask(100).ok());
}

TEST_F(BalancerCoreTest, AFullReplicaIsLeftAloneForAsLongAsItAsks) {
  AddReplica();
  Ask(1).value();
  const StartAttempt start = Started();
  core_->OnAttemptFailed(start.request, 1,
                         WithReason(absl::ResourceExhaustedError("full"), kReasonOverloaded),
                         absl::Seconds(1), now_, &actions_);
  Pass(absl::Milliseconds(400));
  EXPECT_TRUE(Take<StartAttempt>().empty());
  Pass(absl::Milliseconds(1200));
  EXPECT_EQ(Started().attempt, 2u);
  EXPECT_EQ(core_->Replicas(now_)[0].breaker, "closed");
}

TEST_F(BalancerCoreTest, TheQueueIsBoundedAndItsDeadlinesHold) {
  options_.admission.queued_requests_max = 2;
  options_.pick.waiting_at_replica_max = 1;
  core_ = std::make_unique<BalancerCore>(options_);
  AddReplica();
  Ask(1).value();
  Started();
  const RequestKey second = Ask(2, {.deadline = now_ + absl::Seconds(1)}).value();
  ASSERT_EQ(Take<QueueRequest>().size(), 1u);
  Ask(3, {.priority = Priority::kBatch}).value();
  const absl::Status refused = Ask(4, {.priority = Priority::kBatch}).status();
  EXPECT_EQ(ReasonOf(refused), kReasonOverloaded);
  EXPECT_GT(RetryDelayOf(refused), absl::ZeroDuration());
  actions_.clear();
  EXPECT_TRUE(Ask(5, {.priority = Priority::kInteractive}).ok());  // sheds the batch one
  EXPECT_EQ(Take<FailRequest>().size(), 1u);
  now_ += absl::Seconds(1);
  core_->OnTick(now_, &actions_);
  const auto failed = Take<FailRequest>();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].request, second);
  EXPECT_EQ(ReasonOf(failed[0].status), kReasonInQueue);
}

TEST_F(BalancerCoreTest, ADeadlineEndsARunningRequestAndItsAttempt) {
  AddReplica();
  Ask(1, {.deadline = now_ + absl::Seconds(2)}).value();
  const StartAttempt start = Started();
  Accept(start);
  Tokens(start, 0, 5);
  Take<DeliverTokens>();
  now_ += absl::Seconds(2);
  EXPECT_LE(core_->NextTick(), now_);
  core_->OnTick(now_, &actions_);
  ASSERT_EQ(actions_.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<CancelAttempt>(actions_[0]));
  EXPECT_EQ(ReasonOf(std::get<FailRequest>(actions_[1]).status), kReasonRunning);
}

TEST_F(BalancerCoreTest, F14_ADrainThatDoesNotWaitMovesEveryRequest) {
  const ReplicaKey first = AddReplica();
  for (int request = 0; request < 3; ++request) {
    Ask(request).value();
  }
  for (const StartAttempt& start : Take<StartAttempt>()) {
    Accept(start);
    Tokens(start, 0, 1);
  }
  AddReplica();
  actions_.clear();
  core_->MoveAway(first, now_, &actions_);
  EXPECT_EQ(Take<StartAttempt>().size(), 3u);
  EXPECT_EQ(core_->Replicas(now_)[0].attempts, 0);
  core_->OnReplicaRemoved(first, now_, &actions_);
  EXPECT_EQ(core_->Replicas(now_).size(), 1u);
}

TEST_F(BalancerCoreTest, F10_ARequestFromAnotherBalancerGoesOnAfterItsTokens) {
  AddReplica();
  const std::vector<int32_t> emitted = {7, 7, 7};
  Ask(1, {.emitted = emitted, .fingerprint = "f"}).value();
  const StartAttempt start = Started();
  EXPECT_EQ(start.emitted, emitted);
  Accept(start);
  Tokens(start, 3, 1);
  EXPECT_EQ(Take<DeliverTokens>().size(), 1u);
}

TEST_F(BalancerCoreTest, ALostLoadStreamStopsNewWorkAndLeavesRunningWork) {
  const ReplicaKey replica = AddReplica();
  Ask(1).value();
  const StartAttempt start = Started();
  Accept(start);
  core_->OnWatchLost(replica, now_, &actions_);
  EXPECT_EQ(ReasonOf(Ask(2).status()), kReasonNoReplica);
  Tokens(start, 0, 1);
  EXPECT_EQ(Take<DeliverTokens>().size(), 1u);
  Report(replica);
  EXPECT_TRUE(Ask(2).ok());
}

}  // namespace
}  // namespace trireme::balance
