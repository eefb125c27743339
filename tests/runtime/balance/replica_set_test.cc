#include "runtime/balance/replica_set.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace trireme::balance {
namespace {

LoadReport Serving(uint64_t seq, uint64_t epoch = 1) {
  LoadReport report;
  report.epoch = epoch;
  report.report_seq = seq;
  report.phase = ReplicaPhase::kServing;
  report.new_requests_max = 100;
  report.fingerprint = "f";
  return report;
}

class ReplicaSetTest : public ::testing::Test {
 protected:
  int Usable(const CandidateQuery& query = {}) {
    int usable = 0;
    for (const Candidate& candidate : replicas_.Candidates(query, now_)) {
      usable += candidate.usable ? 1 : 0;
    }
    return usable;
  }

  HealthOptions health_;
  PickOptions pick_;
  ReplicaSet replicas_{&health_, &pick_, 1};
  absl::Time now_ = absl::UnixEpoch();
  Replica* first_ = replicas_.Add("r1", now_);
};

TEST_F(ReplicaSetTest, F5_ReportsAgeFromFreshToStaleToSuspect) {
  EXPECT_EQ(first_->Health(health_, now_), ReplicaHealth::kUnknown);
  first_->Apply(Serving(1), now_);
  EXPECT_EQ(first_->Health(health_, now_ + absl::Seconds(1)), ReplicaHealth::kFresh);
  EXPECT_EQ(first_->Health(health_, now_ + absl::Seconds(1.1)), ReplicaHealth::kStale);
  EXPECT_EQ(first_->Health(health_, now_ + absl::Seconds(3)), ReplicaHealth::kStale);
  EXPECT_EQ(first_->Health(health_, now_ + absl::Seconds(3.1)), ReplicaHealth::kSuspect);
  now_ += absl::Seconds(3.1);
  EXPECT_TRUE(replicas_.Candidates({}, now_).empty());
}

TEST_F(ReplicaSetTest, B9_DrainingAndLostReplicasAreNoCandidates) {
  LoadReport report = Serving(1);
  report.phase = ReplicaPhase::kDraining;
  first_->Apply(report, now_);
  EXPECT_TRUE(replicas_.Candidates({}, now_).empty());
  first_->Apply(Serving(2), now_);
  EXPECT_EQ(Usable(), 1);
  first_->lost = true;
  EXPECT_FALSE(replicas_.AnyServing(now_));
  first_->Apply(Serving(3), now_);
  EXPECT_TRUE(replicas_.AnyServing(now_));
}

TEST_F(ReplicaSetTest, B9_TheShareOfANewReplicaRisesInAStraightLine) {
  first_->Apply(Serving(1), now_);
  EXPECT_DOUBLE_EQ(first_->Weight(health_, now_), 0.1);
  EXPECT_DOUBLE_EQ(first_->Weight(health_, now_ + absl::Seconds(15)), 0.55);
  EXPECT_DOUBLE_EQ(first_->Weight(health_, now_ + absl::Seconds(30)), 1);
  EXPECT_TRUE(first_->Apply(Serving(1, /*epoch=*/2), now_ + absl::Seconds(60)));
  EXPECT_DOUBLE_EQ(first_->Weight(health_, now_ + absl::Seconds(60)), 0.1);
}

TEST_F(ReplicaSetTest, F4_WhatWasSentCountsWhateverTheReportsSay) {
  first_->Apply(Serving(1), now_);
  first_->attempts_waiting = pick_.waiting_at_replica_max;
  first_->tokens_waiting = 5000;
  first_->Apply(Serving(2), now_);  // "nothing waits here"
  EXPECT_EQ(Usable(), 0);
  EXPECT_EQ(replicas_.Candidates({}, now_)[0].queued_tokens, 5000);
}

TEST_F(ReplicaSetTest, ANewcomerNeedsAnEqualFingerprintWhenItSaysSo) {
  first_->Apply(Serving(1), now_);
  EXPECT_EQ(Usable({.needs_fingerprint = true, .fingerprint = "f"}), 1);
  EXPECT_EQ(Usable({.needs_fingerprint = true, .fingerprint = "g"}), 0);
  EXPECT_TRUE(replicas_.MayHaveFingerprint("f"));
  EXPECT_FALSE(replicas_.MayHaveFingerprint("g"));
  replicas_.Add("r2", now_);  // not known yet
  EXPECT_TRUE(replicas_.MayHaveFingerprint("g"));
}

TEST_F(ReplicaSetTest, AnAvoidedReplicaIsTakenOnlyWhenNobodyElseServes) {
  const std::vector<ReplicaKey> avoided = {first_->key};
  first_->Apply(Serving(1), now_);
  EXPECT_EQ(Usable({.avoided = avoided}), 1);
  replicas_.Add("r2", now_)->Apply(Serving(1), now_);
  EXPECT_EQ(Usable({.avoided = avoided}), 1);
  EXPECT_EQ(Usable(), 2);
}

// What was known of a replica's cache ends with its epoch, and an old epoch's word is not heard.
TEST_F(ReplicaSetTest, F6_AReplicaThatBeganAnewIsTakenForEmpty) {
  const std::vector<uint64_t> blocks = {1, 2, 3};
  first_->Apply(Serving(1, /*epoch=*/1), now_);
  first_->prefixes.Insert(blocks);
  const auto cached = [&] {
    const auto candidates = replicas_.Candidates({.prefix_blocks = blocks}, now_);
    return candidates.empty() ? -1 : candidates[0].cached_tokens;
  };
  EXPECT_EQ(cached(), 3 * kHashTokens);
  first_->Apply(Serving(2, /*epoch=*/1), now_);
  EXPECT_EQ(cached(), 3 * kHashTokens);
  first_->Apply(Serving(1, /*epoch=*/2), now_);
  EXPECT_EQ(cached(), 0);
}

TEST_F(ReplicaSetTest, B6_AtMostHalfAreEjectedAndNeverTheLast) {
  SeededRandom random(1);
  health_.failures_to_open = 1;
  first_->Apply(Serving(1), now_);
  EXPECT_FALSE(replicas_.MayEject(*first_, now_));
  Replica* second = replicas_.Add("r2", now_);
  EXPECT_FALSE(replicas_.MayEject(*first_, now_));  // the other one does not serve
  second->Apply(Serving(1), now_);
  EXPECT_TRUE(replicas_.MayEject(*first_, now_));
  first_->breaker.OnFailure(false, true, now_, &random);
  EXPECT_FALSE(replicas_.MayEject(*second, now_));
}

TEST_F(ReplicaSetTest, OnlyWhatWasUnderWayAtTheFirstLossMovesFree) {
  first_->Apply(Serving(1), now_);
  EXPECT_TRUE(first_->MovesFree(/*started=*/now_, now_ + absl::Seconds(1)));
  EXPECT_TRUE(first_->MovesFree(now_ + absl::Seconds(1), now_ + absl::Seconds(2)));
  EXPECT_FALSE(first_->MovesFree(now_ + absl::Seconds(2), now_ + absl::Seconds(3)));
  first_->Apply(Serving(1, /*epoch=*/2), now_ + absl::Seconds(4));
  EXPECT_TRUE(first_->MovesFree(now_ + absl::Seconds(5), now_ + absl::Seconds(6)));
}

}  // namespace
}  // namespace trireme::balance
