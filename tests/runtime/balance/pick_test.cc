#include "runtime/balance/pick.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/balance/prefix_affinity.h"

namespace trireme::balance {
namespace {

std::vector<Candidate> Idle(int count) {
  std::vector<Candidate> candidates;
  for (int index = 0; index < count; ++index) {
    candidates.push_back({.key = static_cast<ReplicaKey>(index + 1),
                          .name_hash = HashReplicaName(1, absl::StrCat("r", index)),
                          .prefill_tokens_per_second = 1000,
                          .step_time = absl::Milliseconds(10)});
  }
  return candidates;
}

PickRequest Prompt(uint64_t affinity) {
  return {.affinity = SeededRandom::Mix(affinity + 1), .prompt_tokens = 100, .load_tokens = 200};
}

class PickTest : public ::testing::Test {
 protected:
  Picked PickOne(const PickRequest& request, const std::vector<Candidate>& candidates) {
    return Pick(request, candidates, options_, &random_).value();
  }

  PickOptions options_{.explore = 0};
  SeededRandom random_{1};
};

// By hand: (300 queued + 100 - 40 cached) / 1000 a second + 2 waiting * 128 / 4 * 10 ms + 10 ms.
TEST_F(PickTest, PredictsTheTimeToTheFirstToken) {
  Candidate candidate = Idle(1)[0];
  candidate.queued_tokens = 300;
  candidate.cached_tokens = 40;
  EXPECT_EQ(PredictFirstToken(Prompt(1), candidate), absl::Milliseconds(370));
  candidate.waiting_requests = 2;
  candidate.running_sequences = 4;
  EXPECT_EQ(PredictFirstToken(Prompt(1), candidate), absl::Milliseconds(370 + 640));
}

TEST_F(PickTest, EqualReplicasSplitByPrefix) {
  const std::vector<Candidate> candidates = Idle(4);
  EXPECT_EQ(PickOne(Prompt(5), candidates).index, PickOne(Prompt(5), candidates).index);
  EXPECT_EQ(PickOne(Prompt(5), candidates).reason, PickReason::kAffinity);
}

// B-3: 10 000 unique prompts. The standard deviation of a share is 43, so 1.05 is 3 of them.
TEST_F(PickTest, B3_MissesSpreadEvenly) {
  const std::vector<Candidate> candidates = Idle(4);
  std::vector<int> picks(4);
  for (uint64_t prompt = 0; prompt < 10000; ++prompt) {
    ++picks[PickOne(Prompt(prompt), candidates).index];
  }
  EXPECT_LE(*std::max_element(picks.begin(), picks.end()), 2500 * 1.05);
}

// B-2 and F16: one group takes 80 % of the load, 100 requests are in flight.
TEST_F(PickTest, F16_AHotPrefixStaysWithinTheBoundOfTheMean) {
  std::vector<Candidate> candidates = Idle(4);
  options_.explore = 0.01;
  std::deque<size_t> in_flight;
  for (uint64_t turn = 0; turn < 5000; ++turn) {
    const PickRequest request = Prompt(random_.Chance(0.8) ? 0 : 1 + random_.Below(63));
    const size_t index = PickOne(request, candidates).index;
    candidates[index].tokens_in_flight += request.load_tokens;
    in_flight.push_back(index);
    int64_t total = 0;
    for (const Candidate& candidate : candidates) {
      total += candidate.tokens_in_flight;
    }
    if (in_flight.size() >= 64) {  // the bound holds from a mean of 16 requests on
      EXPECT_LE(static_cast<double>(candidates[index].tokens_in_flight),
                1.25 * static_cast<double>(total) / 4);
    }
    if (in_flight.size() > 100) {
      candidates[in_flight.front()].tokens_in_flight -= request.load_tokens;
      in_flight.pop_front();
    }
  }
}

TEST_F(PickTest, AFasterReplicaWinsOverTheOwnerAndACachedPrefixOverAShorterQueue) {
  std::vector<Candidate> candidates = Idle(2);
  const size_t owner = PickOne(Prompt(3), candidates).index;
  candidates[owner].queued_tokens = 90;  // 90 ms, more than the slack of 20 ms
  const Picked fastest = PickOne(Prompt(3), candidates);
  EXPECT_EQ(fastest.index, 1 - owner);
  EXPECT_EQ(fastest.reason, PickReason::kFastest);
  candidates[owner].cached_tokens = 96;
  EXPECT_EQ(PickOne(Prompt(3), candidates).index, owner);
}

TEST_F(PickTest, F5_OldReportsMeanTheLessLoadedOfTwoByOwnCount) {
  std::vector<Candidate> candidates = Idle(2);
  for (Candidate& candidate : candidates) {
    candidate.stale = true;
  }
  candidates[0].tokens_in_flight = 1000;
  candidates[1].queued_tokens = 1000000;  // of an old report: not believed
  for (uint64_t prompt = 0; prompt < 50; ++prompt) {
    const Picked picked = PickOne(Prompt(prompt), candidates);
    EXPECT_EQ(picked.index, 1u);
    EXPECT_EQ(picked.reason, PickReason::kTwoChoices);
  }
}

// B-9: a tenth of the weight means a tenth of the load of the others.
TEST_F(PickTest, F13_AReplicaThatStartsSlowlyGetsItsShareOnly) {
  std::vector<Candidate> candidates = Idle(4);
  candidates[3].weight = 0.1;
  std::vector<int> picks(4);
  for (uint64_t prompt = 0; prompt < 400; ++prompt) {
    const size_t index = PickOne(Prompt(prompt), candidates).index;
    candidates[index].tokens_in_flight += 200;
    candidates[index].queued_tokens += index == 3 ? 0 : 100;  // the new one looks the fastest
    ++picks[index];
  }
  EXPECT_GT(picks[3], 0);
  EXPECT_LE(picks[3], 1.25 * 400 * 0.1 / 3.1 + 1);
}

TEST_F(PickTest, ExploresAsOftenAsAsked) {
  std::vector<Candidate> candidates = Idle(2);
  options_.explore = 0.01;
  int explored = 0;
  for (uint64_t prompt = 0; prompt < 10000; ++prompt) {
    explored += PickOne(Prompt(prompt), candidates).reason == PickReason::kExplored ? 1 : 0;
  }
  EXPECT_NEAR(explored, 100, 40);  // four standard deviations
}

TEST_F(PickTest, NoUsableCandidateMeansNoPick) {
  std::vector<Candidate> candidates = Idle(2);
  EXPECT_FALSE(Pick(Prompt(1), {}, options_, &random_).has_value());
  candidates[0].usable = false;
  EXPECT_EQ(PickOne(Prompt(1), candidates).index, 1u);
  candidates[1].usable = false;
  EXPECT_FALSE(Pick(Prompt(1), candidates, options_, &random_).has_value());
}

TEST_F(PickTest, B15_EveryPickCanBeExplained) {
  PickRequest request = Prompt(1);
  request.explain = true;
  const std::string text = PickOne(request, Idle(2)).explanation;
  EXPECT_NE(text.find("reason=affinity"), std::string::npos) << text;
  EXPECT_NE(text.find("replica=2 first_token_ms=110.0 cached_tokens=0"), std::string::npos) << text;
}

}  // namespace
}  // namespace trireme::balance
