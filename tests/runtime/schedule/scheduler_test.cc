#include "runtime/schedule/scheduler.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_model.h"

namespace trireme::schedule {
namespace {

constexpr int32_t kVocabulary = 1000;

Request MakeRequest(std::vector<int32_t> prompt, int64_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.stopping.max_tokens = max_tokens;
  return request;
}

std::vector<int32_t> MakePrompt(std::mt19937& random, size_t tokens) {
  std::vector<int32_t> prompt(tokens);
  for (int32_t& token_id : prompt) {
    token_id = static_cast<int32_t>(random() % kVocabulary);
  }
  return prompt;
}

// Runs batches in order over a cache that holds the token of each slot, so that a row whose history
// was overwritten or never written gives a wrong token. Ends sequences at max_tokens.
class Simulation {
 public:
  explicit Simulation(const SchedulerLimits& limits)
      : limits_(limits),
        scheduler_(limits),
        cache_(static_cast<size_t>(limits.blocks) * cache::kBlockTokens, -1) {}

  ~Simulation() {
    for (const auto& sequence : sequences_) {
      if (sequence->phase() != SequencePhase::kEnded) {
        scheduler_.Remove(sequence.get());
      }
    }
  }

  Sequence* Add(Request request, SequencePurpose purpose = SequencePurpose::kGenerate) {
    sequences_.push_back(std::make_unique<Sequence>(std::move(request), purpose));
    scheduler_.Add(sequences_.back().get());
    return sequences_.back().get();
  }

  // One more plan, if one can be made and there is room in flight.
  bool Send() {
    if (static_cast<int32_t>(in_flight_.size()) == limits_.plans_in_flight_max) {
      return false;
    }
    Batch batch;
    if (!scheduler_.Next(++step_, &batch)) {
      return false;
    }
    CheckBatch(batch);
    std::vector<int32_t> drawn;
    for (const BatchEntry& entry : batch.entries) {
      RunRows(entry, &drawn);
    }
    in_flight_.push_back({batch, drawn});
    return true;
  }

  // The oldest plan's result.
  bool Receive() {
    if (in_flight_.empty()) {
      return false;
    }
    const Plan plan = in_flight_.front();
    in_flight_.pop_front();
    size_t sample_index = 0;
    for (const BatchEntry& entry : plan.batch.entries) {
      scheduler_.Complete(entry);
      Sequence* sequence = entry.sequence;
      if (entry.draws) {
        const int32_t token_id = plan.drawn[sample_index++];
        if (sequence->phase() != SequencePhase::kEnded) {
          scheduler_.Append(sequence, token_id);
          outputs_[sequence].push_back(token_id);
          if (sequence->generated_tokens() == sequence->request().stopping.max_tokens ||
              sequence->token_count() == limits_.context) {
            scheduler_.Remove(sequence);
          }
        }
      }
      scored_[sequence] += entry.logit_rows;
      if (sequence->purpose() == SequencePurpose::kScore &&
          scored_[sequence] == sequence->token_count() &&
          sequence->phase() != SequencePhase::kEnded) {
        scheduler_.Remove(sequence);
      }
    }
    return true;
  }

  void RunToTheEnd() {
    do {
      while (Send()) {
      }
    } while (Receive());
    EXPECT_TRUE(scheduler_.waiting().empty());
    EXPECT_TRUE(scheduler_.running().empty());
    EXPECT_EQ(scheduler_.pool().blocks_free(), limits_.blocks);
    for (const auto& sequence : sequences_) {
      EXPECT_EQ(sequence->phase(), SequencePhase::kEnded);
      EXPECT_EQ(sequence->plans_in_flight(), 0);
    }
  }

  const std::vector<int32_t>& output(const Sequence* sequence) { return outputs_[sequence]; }
  int32_t scored(const Sequence* sequence) { return scored_[sequence]; }
  Scheduler& scheduler() { return scheduler_; }
  const Batch& newest() const { return in_flight_.back().batch; }
  size_t plans_in_flight() const { return in_flight_.size(); }

 private:
  struct Plan {
    Batch batch;
    std::vector<int32_t> drawn;
  };

  void CheckBatch(const Batch& batch) {
    int32_t tokens = 0;
    int32_t logit_rows = 0;
    for (const BatchEntry& entry : batch.entries) {
      ASSERT_GT(entry.rows, 0);
      tokens += entry.rows;
      logit_rows += entry.logit_rows;
    }
    ASSERT_EQ(tokens, batch.tokens);
    ASSERT_EQ(logit_rows, batch.logit_rows);
    ASSERT_LE(tokens, limits_.tokens);
    ASSERT_LE(logit_rows, limits_.logit_rows);
    ASSERT_LE(static_cast<int32_t>(scheduler_.running().size()), limits_.sequences);
  }

  void RunRows(const BatchEntry& entry, std::vector<int32_t>* drawn) {
    const Sequence& sequence = *entry.sequence;
    for (int32_t row = 0; row < entry.rows; ++row) {
      const int32_t position = entry.first_position + row;
      cache_[static_cast<size_t>(sequence.blocks().Slot(position))] =
          sequence.tokens()[static_cast<size_t>(position)];
    }
    testing::HistoryHash hash;
    for (int32_t position = 0; position < entry.first_position + entry.rows; ++position) {
      hash.Add(cache_[static_cast<size_t>(sequence.blocks().Slot(position))]);
    }
    if (entry.draws) {
      drawn->push_back(hash.NextToken(kVocabulary));
    }
  }

  const SchedulerLimits limits_;
  Scheduler scheduler_;
  std::vector<int32_t> cache_;  // [slots]: the token last written there
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::deque<Plan> in_flight_;
  std::map<const Sequence*, std::vector<int32_t>> outputs_;
  std::map<const Sequence*, int32_t> scored_;
  uint64_t step_ = 0;
};

TEST(SchedulerTest, CutsAPromptIntoChunksOfTheBudgetAndThenDecodes) {
  std::mt19937 random(1);
  Simulation simulation({.tokens = 7, .sequences = 4, .logit_rows = 4, .context = 64, .blocks = 4});
  Sequence* sequence = simulation.Add(MakeRequest(MakePrompt(random, 17), 3));
  const int32_t rows_wanted[] = {7, 7, 3, 1, 1};
  for (const int32_t rows : rows_wanted) {
    ASSERT_TRUE(simulation.Send());
    ASSERT_EQ(simulation.newest().entries.size(), 1u);
    EXPECT_EQ(simulation.newest().entries[0].rows, rows);
    EXPECT_EQ(simulation.newest().entries[0].draws, rows != 7);
    simulation.Receive();
  }
  EXPECT_EQ(sequence->phase(), SequencePhase::kEnded);
}

TEST(SchedulerTest, PutsDecodesBeforePrefillsInOneBatch) {
  std::mt19937 random(2);
  Simulation simulation(
      {.tokens = 8, .sequences = 4, .logit_rows = 4, .context = 64, .blocks = 16});
  Sequence* first = simulation.Add(MakeRequest(MakePrompt(random, 4), 10));
  simulation.Send();
  simulation.Receive();
  Sequence* second = simulation.Add(MakeRequest(MakePrompt(random, 20), 10));
  ASSERT_TRUE(simulation.Send());
  const Batch& batch = simulation.newest();
  ASSERT_EQ(batch.entries.size(), 2u);
  EXPECT_EQ(batch.entries[0].sequence, first);
  EXPECT_EQ(batch.entries[0].rows, 1);
  EXPECT_EQ(batch.entries[1].sequence, second);
  EXPECT_EQ(batch.entries[1].rows, 7);
  EXPECT_EQ(batch.prefill_tokens, 7);
}

TEST(SchedulerTest, SpreadsDecodesOverThePlansInFlight) {
  std::mt19937 random(3);
  Simulation simulation({.tokens = 64,
                         .sequences = 8,
                         .logit_rows = 8,
                         .context = 64,
                         .blocks = 64,
                         .plans_in_flight_max = 3});
  for (int count = 0; count < 7; ++count) {
    simulation.Add(MakeRequest(MakePrompt(random, 3), 30));
  }
  while (simulation.Send() || simulation.Receive()) {
    if (simulation.scheduler().running_tokens() >= 7 * 10) {
      break;
    }
  }
  // 7 over 3 plans: never more than 3 in one, and the three plans together hold all 7.
  while (simulation.plans_in_flight() > 0) {
    simulation.Receive();
  }
  size_t decodes = 0;
  for (int plan = 0; plan < 3; ++plan) {
    ASSERT_TRUE(simulation.Send());
    EXPECT_LE(simulation.newest().entries.size(), 3u);
    decodes += simulation.newest().entries.size();
  }
  EXPECT_EQ(decodes, 7u);
  EXPECT_FALSE(simulation.Send());
}

TEST(SchedulerTest, DoesNotScheduleASequenceWhoseTokenIsBeingDrawn) {
  std::mt19937 random(4);
  Simulation simulation({.tokens = 64,
                         .sequences = 8,
                         .logit_rows = 8,
                         .context = 64,
                         .blocks = 64,
                         .plans_in_flight_max = 2});
  simulation.Add(MakeRequest(MakePrompt(random, 3), 30));
  EXPECT_TRUE(simulation.Send());
  EXPECT_FALSE(simulation.Send());
  simulation.Receive();
  EXPECT_TRUE(simulation.Send());
}

TEST(SchedulerTest, SendsChunksOfOnePromptInConsecutivePlans) {
  std::mt19937 random(5);
  Simulation simulation({.tokens = 8,
                         .sequences = 8,
                         .logit_rows = 8,
                         .context = 64,
                         .blocks = 64,
                         .plans_in_flight_max = 3});
  simulation.Add(MakeRequest(MakePrompt(random, 20), 3));
  EXPECT_TRUE(simulation.Send());
  EXPECT_TRUE(simulation.Send());
  EXPECT_TRUE(simulation.Send());
  EXPECT_TRUE(simulation.newest().entries[0].draws);
}

TEST(SchedulerTest, PreemptsTheYoungestWhenBlocksRunOut) {
  std::mt19937 random(6);
  // Two prompts of one block each in three blocks: both need a second one.
  Simulation simulation(
      {.tokens = 64, .sequences = 4, .logit_rows = 4, .context = 48, .blocks = 3});
  const std::vector<int32_t> prompt = MakePrompt(random, 14);
  const std::vector<int32_t> other = MakePrompt(random, 14);
  Sequence* old = simulation.Add(MakeRequest(prompt, 30));
  simulation.Send();
  simulation.Receive();
  Sequence* young = simulation.Add(MakeRequest(other, 30));
  simulation.RunToTheEnd();
  EXPECT_EQ(old->preemptions(), 0);
  EXPECT_GE(young->preemptions(), 1);
  EXPECT_GT(young->recomputed_tokens(), 0);
  EXPECT_EQ(simulation.output(old), testing::FakeGenerate(prompt, 30, kVocabulary));
  EXPECT_EQ(simulation.output(young), testing::FakeGenerate(other, 30, kVocabulary));
}

TEST(SchedulerTest, AdmitsInTheOrderOfArrivalEvenWhenALaterOneWouldFit) {
  std::mt19937 random(7);
  Simulation simulation(
      {.tokens = 64, .sequences = 4, .logit_rows = 4, .context = 64, .blocks = 4});
  simulation.Add(MakeRequest(MakePrompt(random, 30), 4));
  Sequence* large = simulation.Add(MakeRequest(MakePrompt(random, 34), 4));
  Sequence* small = simulation.Add(MakeRequest(MakePrompt(random, 2), 4));
  simulation.Send();
  EXPECT_EQ(large->phase(), SequencePhase::kWaiting);
  EXPECT_EQ(small->phase(), SequencePhase::kWaiting);
  simulation.RunToTheEnd();
}

TEST(SchedulerTest, ServesAllSequencesEvenlyWhenTheBudgetIsSmallerThanTheirNumber) {
  std::mt19937 random(8);
  Simulation simulation(
      {.tokens = 2, .sequences = 3, .logit_rows = 2, .context = 64, .blocks = 12});
  std::vector<Sequence*> sequences;
  for (int count = 0; count < 3; ++count) {
    sequences.push_back(simulation.Add(MakeRequest(MakePrompt(random, 1), 40)));
  }
  for (int step = 0; step < 30; ++step) {
    simulation.Send();
    simulation.Receive();
  }
  size_t fewest = 1000;
  size_t most = 0;
  for (const Sequence* sequence : sequences) {
    fewest = std::min(fewest, simulation.output(sequence).size());
    most = std::max(most, simulation.output(sequence).size());
  }
  EXPECT_GE(fewest, 10u);
  EXPECT_LE(most - fewest, 5u);  // the third is admitted a few steps after the others
}

TEST(SchedulerTest, FreesTheBlocksOfARemovedSequenceAtOnce) {
  std::mt19937 random(9);
  Simulation simulation(
      {.tokens = 64, .sequences = 4, .logit_rows = 4, .context = 64, .blocks = 8});
  Sequence* sequence = simulation.Add(MakeRequest(MakePrompt(random, 40), 4));
  simulation.Send();
  EXPECT_EQ(simulation.scheduler().pool().blocks_free(), 5);
  simulation.scheduler().Remove(sequence);
  EXPECT_EQ(simulation.scheduler().pool().blocks_free(), 8);
  EXPECT_EQ(sequence->plans_in_flight(), 1);
  simulation.RunToTheEnd();
  EXPECT_TRUE(simulation.output(sequence).empty());
}

TEST(SchedulerTest, RemovesExpiredSequencesInQueueAndBatch) {
  std::mt19937 random(10);
  Simulation simulation(
      {.tokens = 64, .sequences = 1, .logit_rows = 4, .context = 64, .blocks = 8});
  Request early = MakeRequest(MakePrompt(random, 4), 4);
  early.deadline = absl::FromUnixSeconds(10);
  Request late = early;
  late.deadline = absl::FromUnixSeconds(20);
  Sequence* running = simulation.Add(late);
  Sequence* queued = simulation.Add(early);
  Sequence* without = simulation.Add(MakeRequest(MakePrompt(random, 4), 4));
  simulation.Send();
  Scheduler& scheduler = simulation.scheduler();
  EXPECT_EQ(scheduler.NextDeadline(), absl::FromUnixSeconds(10));
  std::vector<Sequence*> expired;
  scheduler.RemoveExpired(absl::FromUnixSeconds(9), &expired);
  EXPECT_TRUE(expired.empty());
  scheduler.RemoveExpired(absl::FromUnixSeconds(10), &expired);
  EXPECT_THAT(expired, ::testing::ElementsAre(queued));
  scheduler.RemoveExpired(absl::FromUnixSeconds(30), &expired);
  EXPECT_THAT(expired, ::testing::ElementsAre(queued, running));
  EXPECT_EQ(scheduler.NextDeadline(), absl::InfiniteFuture());
  EXPECT_EQ(without->phase(), SequencePhase::kWaiting);
  simulation.RunToTheEnd();
}

TEST(SchedulerTest, ScoresEachRowOnceEvenAcrossPreemptions) {
  std::mt19937 random(11);
  Simulation simulation({.tokens = 10,
                         .sequences = 4,
                         .logit_rows = 6,
                         .context = 64,
                         .blocks = 4,
                         .plans_in_flight_max = 2});
  Sequence* generated = simulation.Add(MakeRequest(MakePrompt(random, 10), 38));
  simulation.Send();
  simulation.Receive();
  Sequence* score = simulation.Add(MakeRequest(MakePrompt(random, 40), 0), SequencePurpose::kScore);
  simulation.RunToTheEnd();
  EXPECT_EQ(simulation.scored(score), 40);
  EXPECT_EQ(simulation.output(generated).size(), 38u);
}

struct StormCase {
  int32_t tokens;
  int32_t plans_in_flight;
  int32_t blocks;
};

// Many requests with random arrivals and cancellations: every output is what the request gives
// alone, whatever budget, depth and preemptions there are.
TEST(SchedulerTest, OutputsDoNotDependOnTheCompany) {
  for (const StormCase& storm :
       {StormCase{1, 1, 40}, StormCase{7, 1, 12}, StormCase{64, 2, 10}, StormCase{512, 3, 9},
        StormCase{512, 1, 200}, StormCase{7, 3, 9}, StormCase{33, 2, 16}}) {
    std::mt19937 random(static_cast<uint32_t>(storm.tokens * 7 + storm.plans_in_flight));
    Simulation simulation({.tokens = storm.tokens,
                           .sequences = 8,
                           .logit_rows = 5,
                           .context = 128,
                           .blocks = storm.blocks,
                           .plans_in_flight_max = storm.plans_in_flight});
    std::vector<std::pair<Sequence*, std::vector<int32_t>>> live;
    std::vector<Sequence*> cancelled;
    int added = 0;
    while (added < 60) {
      const uint32_t action = random() % 8;
      if (action == 0) {
        std::vector<int32_t> prompt = MakePrompt(random, 1 + random() % 80);
        const int64_t max_tokens = 1 + random() % 48;
        Sequence* sequence = simulation.Add(MakeRequest(prompt, max_tokens));
        live.push_back({sequence, prompt});
        ++added;
      } else if (action == 1 && !live.empty() && random() % 4 == 0) {
        Sequence* sequence = live[random() % live.size()].first;
        if (sequence->phase() != SequencePhase::kEnded) {
          simulation.scheduler().Remove(sequence);
          cancelled.push_back(sequence);
        }
      } else if (action < 5) {
        simulation.Send();
      } else {
        simulation.Receive();
      }
    }
    simulation.RunToTheEnd();
    for (const auto& [sequence, prompt] : live) {
      std::vector<int32_t> expected =
          testing::FakeGenerate(prompt, sequence->request().stopping.max_tokens, kVocabulary);
      if (std::find(cancelled.begin(), cancelled.end(), sequence) != cancelled.end()) {
        ASSERT_LE(simulation.output(sequence).size(), expected.size());
        expected.resize(simulation.output(sequence).size());
      }
      ASSERT_EQ(simulation.output(sequence), expected);
    }
    if (storm.blocks <= 12) {
      EXPECT_GT(simulation.scheduler().preemptions(), 0);
    }
  }
}

}  // namespace
}  // namespace trireme::schedule
