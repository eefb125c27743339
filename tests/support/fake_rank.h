// A rank without weights: its cache holds the token of each slot, and the token it draws is a pure
// function of what the block table says the history is (fake_model.h). Every plan is validated as
// one from another process would be.
#ifndef TRIREME_TESTS_SUPPORT_FAKE_RANK_H_
#define TRIREME_TESTS_SUPPORT_FAKE_RANK_H_

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "runtime/base/mutex.h"
#include "runtime/cache/block_pool.h"
#include "runtime/engine/in_process_pipeline.h"
#include "runtime/engine/step.h"
#include "tests/support/fake_model.h"

namespace trireme::testing {

class FakeRank {
 public:
  FakeRank(const engine::StepLimits& limits, int32_t vocabulary)
      : limits_(limits),
        vocabulary_(vocabulary),
        cache_(static_cast<size_t>(limits.blocks) * cache::kBlockTokens, -1) {}

  // The logits that scoring gives for a row: its token's id, and 1 / 1024 for each column.
  static float Logit(int32_t next_token, int32_t column) {
    return static_cast<float>(next_token) + static_cast<float>(column) / 1024;
  }

  void Run(const engine::StepPlan& plan, engine::StepResult* result) {
    result->Clear();
    result->step = plan.step;
    result->status = engine::ValidateStepPlan(plan, limits_, vocabulary_);
    if (!result->status.ok()) {
      return;
    }
    for (size_t row = 0; row < plan.token_ids.size(); ++row) {
      cache_[static_cast<size_t>(plan.slots[row])] = plan.token_ids[row];
    }
    drawn_.assign(plan.token_ids.size(), 0);
    for (const engine::PlanSequence& sequence : plan.sequences) {
      HistoryHash hash;
      for (int32_t position = 0; position < sequence.first_position + sequence.rows; ++position) {
        const int32_t block = plan.block_tables[static_cast<size_t>(
            sequence.first_block + position / cache::kBlockTokens)];
        hash.Add(cache_[static_cast<size_t>(block * cache::kBlockTokens +
                                            position % cache::kBlockTokens)]);
        if (position >= sequence.first_position) {
          drawn_[static_cast<size_t>(sequence.first_row + position - sequence.first_position)] =
              hash.NextToken(vocabulary_);
        }
      }
    }
    for (const engine::PlanSample& sample : plan.samples) {
      const int32_t row = plan.logit_rows[static_cast<size_t>(sample.logit_index)];
      result->token_ids.push_back(drawn_[static_cast<size_t>(row)]);
      result->logprobs.push_back(sample.want_logprob ? -static_cast<float>(sample.position) : 0);
    }
    for (size_t index = 0; plan.want_logits && index < plan.logit_rows.size(); ++index) {
      for (int32_t column = 0; column < vocabulary_; ++column) {
        result->logits.push_back(
            Logit(drawn_[static_cast<size_t>(plan.logit_rows[index])], column));
      }
    }
  }

 private:
  const engine::StepLimits limits_;
  const int32_t vocabulary_;
  std::vector<int32_t> cache_;  // [slots]: the token last written there
  std::vector<int32_t> drawn_;  // [rows]
};

// Runs a FakeRank behind one end of a pipeline until a shutdown. Results can be held back.
class FakeRankThread {
 public:
  FakeRankThread(const engine::StepLimits& limits, int32_t vocabulary,
                 engine::InProcessPipeline* pipeline)
      : rank_(limits, vocabulary), source_(pipeline->source(0)), thread_([this] { Loop(); }) {}
  ~FakeRankThread() {
    Hold(false);
    thread_.join();
  }

  // While held, plans are taken but not answered.
  void Hold(bool held) {
    MutexLock lock(&mutex_);
    held_ = held;
    changed_.SignalAll();
  }
  // One result more while held.
  void Release() {
    MutexLock lock(&mutex_);
    ++permits_;
    changed_.SignalAll();
  }
  int64_t plans() const {
    MutexLock lock(&mutex_);
    return plans_;
  }
  void WaitForPlans(int64_t plans) {
    MutexLock lock(&mutex_);
    while (plans_ < plans) {
      changed_.Wait(&mutex_);
    }
  }
  // Called on the rank's thread with each result before it is sent. Set before the first plan.
  void SetFault(void (*fault)(engine::StepResult* result)) { fault_ = fault; }

 private:
  void Loop() {
    engine::StepPlan plan;
    engine::StepResult result;
    while (source_->ReceivePlan(&plan).ok() && plan.kind == engine::PlanKind::kCompute) {
      rank_.Run(plan, &result);
      if (fault_ != nullptr) {
        fault_(&result);
      }
      {
        MutexLock lock(&mutex_);
        ++plans_;
        changed_.SignalAll();
        while (held_ && permits_ == 0) {
          changed_.Wait(&mutex_);
        }
        permits_ -= held_ ? 1 : 0;
      }
      if (!source_->SendResult(result).ok()) {
        return;
      }
    }
  }

  FakeRank rank_;
  engine::PlanSource* const source_;
  void (*fault_)(engine::StepResult*) = nullptr;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  int permits_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t plans_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace trireme::testing

#endif  // TRIREME_TESTS_SUPPORT_FAKE_RANK_H_
