#include "runtime/schedule/scheduler.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace trireme::schedule {
namespace {

void Erase(std::vector<Sequence*>* list, Sequence* sequence) {
  const auto place = std::find(list->begin(), list->end(), sequence);
  CHECK(place != list->end());
  list->erase(place);
}

}  // namespace

void Batch::Clear() {
  step = 0;
  entries.clear();
  tokens = 0;
  logit_rows = 0;
  prefill_tokens = 0;
}

Scheduler::Scheduler(const SchedulerLimits& limits) : limits_(limits), pool_(limits.blocks) {
  CHECK_GT(limits.tokens, 0);
  CHECK_GT(limits.sequences, 0);
  CHECK_GT(limits.logit_rows, 0);
  CHECK_GT(limits.context, 0);
  CHECK_GT(limits.plans_in_flight_max, 0);
  running_.reserve(static_cast<size_t>(limits.sequences));
  ready_.reserve(static_cast<size_t>(limits.sequences));
}

void Scheduler::Add(Sequence* sequence) {
  CHECK(sequence->phase_ == SequencePhase::kNew);
  CHECK_LE(cache::BlocksFor(sequence->token_count()), pool_.blocks_total());
  sequence->phase_ = SequencePhase::kWaiting;
  sequence->arrival_ = ++arrivals_;
  waiting_.push_back(sequence);
}

bool Scheduler::Next(uint64_t step, Batch* batch) {
  batch->Clear();
  batch->step = step;
  preempted_in_this_batch_ = false;
  AddDecodes(batch);
  AddPrefills(batch);
  Admit(batch);
  return !batch->entries.empty();
}

void Scheduler::AddDecodes(Batch* batch) {
  int32_t decoding = 0;
  ready_.clear();
  for (Sequence* sequence : running_) {
    if (sequence->decoding()) {
      ++decoding;
      if (!sequence->sample_in_flight_) {
        ready_.push_back(sequence);
      }
    }
  }
  std::sort(ready_.begin(), ready_.end(), [](const Sequence* left, const Sequence* right) {
    return left->last_turn_ < right->last_turn_;
  });
  int32_t share = (decoding + limits_.plans_in_flight_max - 1) / limits_.plans_in_flight_max;
  // One row is left to those that do not decode yet, so that a small budget does not starve them.
  const int32_t rows_max = std::min(limits_.tokens, limits_.logit_rows);
  share = std::min(share, rows_max > 1 && PrefillWaits() ? rows_max - 1 : rows_max);
  for (Sequence* sequence : ready_) {
    if (share == 0) {
      return;
    }
    // An earlier one of this loop may have preempted it.
    if (sequence->phase_ == SequencePhase::kRunning && MakeRoom(*sequence, *batch)) {
      AddEntry(sequence, 1, batch);
      --share;
    }
  }
}

bool Scheduler::PrefillWaits() const {
  for (const Sequence* sequence : running_) {
    if (!sequence->decoding() && sequence->remaining() > 0) {
      return true;
    }
  }
  return !waiting_.empty() && CanAdmit(*waiting_.front());
}

void Scheduler::AddPrefills(Batch* batch) {
  // Preempting removes younger ones, which stand behind `index`.
  for (size_t index = 0; index < running_.size(); ++index) {
    Sequence* sequence = running_[index];
    if (sequence->decoding() || sequence->remaining() == 0) {
      continue;
    }
    const int32_t rows = RowsThatFit(*sequence, *batch);
    if (rows > 0 && MakeRoom(*sequence, *batch)) {
      AddEntry(sequence, RowsWithBlocks(*sequence, rows), batch);
    }
  }
}

void Scheduler::Admit(Batch* batch) {
  while (!waiting_.empty() && CanAdmit(*waiting_.front())) {
    Sequence* sequence = waiting_.front();
    const int32_t rows = RowsThatFit(*sequence, *batch);
    if (rows == 0) {
      return;
    }
    waiting_.erase(waiting_.begin());
    const int64_t tokens_max = std::min<int64_t>(
        sequence->prompt_tokens_ + sequence->request_.stopping.max_tokens, limits_.context);
    sequence->tokens_.reserve(
        static_cast<size_t>(std::max<int64_t>(tokens_max, sequence->token_count())));
    sequence->blocks_.Reserve(tokens_max);
    sequence->phase_ = SequencePhase::kRunning;
    const auto place = std::upper_bound(running_.begin(), running_.end(), sequence,
                                        [](const Sequence* left, const Sequence* right) {
                                          return left->arrival_ < right->arrival_;
                                        });
    running_.insert(place, sequence);
    AddEntry(sequence, RowsWithBlocks(*sequence, rows), batch);
  }
}

// Blocks for all that is known of it must be free beside what the running ones lack, so that the
// next step does not preempt it again.
bool Scheduler::CanAdmit(const Sequence& sequence) const {
  if (preempted_in_this_batch_ || sequence.sample_in_flight_ ||
      static_cast<int32_t>(running_.size()) >= limits_.sequences) {
    return false;
  }
  if (running_.empty()) {
    return true;
  }
  int64_t missing = sequence.blocks_.MissingBlocks(sequence.token_count() + 1);
  for (const Sequence* other : running_) {
    missing += other->blocks_.MissingBlocks(other->token_count() + 1);
  }
  return missing <= pool_.blocks_free();
}

// By budget and logit rows; blocks are another matter.
int32_t Scheduler::RowsThatFit(const Sequence& sequence, const Batch& batch) const {
  const int32_t rows = std::min(sequence.remaining(), limits_.tokens - batch.tokens);
  const int32_t logit_rows_left = limits_.logit_rows - batch.logit_rows;
  if (sequence.purpose_ == SequencePurpose::kGenerate) {
    const bool draws = rows == sequence.remaining();
    return draws && logit_rows_left == 0 ? rows - 1 : rows;
  }
  const int32_t recomputed = sequence.scheduled_max_ - sequence.scheduled_;
  return std::min(rows, recomputed + logit_rows_left);
}

int32_t Scheduler::RowsWithBlocks(const Sequence& sequence, int32_t rows) const {
  const auto held = static_cast<int64_t>(sequence.blocks_.blocks().size());
  const int64_t positions = (held + pool_.blocks_free()) * cache::kBlockTokens;
  return static_cast<int32_t>(std::min<int64_t>(rows, positions - sequence.scheduled_));
}

// True when a block for the sequence's next row is there, after preempting younger sequences if
// need be. One that is in the batch already stays.
bool Scheduler::MakeRoom(const Sequence& sequence, const Batch& batch) {
  while (sequence.blocks_.MissingBlocks(sequence.scheduled_ + 1) > pool_.blocks_free()) {
    const auto victim =
        std::find_if(running_.rbegin(), running_.rend(), [&](const Sequence* candidate) {
          return candidate->last_step_ != batch.step && !candidate->blocks_.blocks().empty();
        });
    if (victim == running_.rend() || (*victim)->arrival_ <= sequence.arrival_) {
      return false;
    }
    Preempt(*victim);
  }
  return true;
}

void Scheduler::Preempt(Sequence* sequence) {
  Erase(&running_, sequence);
  sequence->blocks_.Clear(pool_);
  sequence->phase_ = SequencePhase::kWaiting;
  sequence->scheduled_ = 0;
  ++sequence->preemptions_;
  ++preemptions_;
  preempted_in_this_batch_ = true;
  const auto place = std::upper_bound(
      waiting_.begin(), waiting_.end(), sequence,
      [](const Sequence* left, const Sequence* right) { return left->arrival_ < right->arrival_; });
  waiting_.insert(place, sequence);
}

void Scheduler::AddEntry(Sequence* sequence, int32_t rows, Batch* batch) {
  CHECK_GT(rows, 0);
  BatchEntry entry{.sequence = sequence, .first_position = sequence->scheduled_, .rows = rows};
  const int32_t end = sequence->scheduled_ + rows;
  const int32_t recomputed = std::clamp(sequence->scheduled_max_ - sequence->scheduled_, 0, rows);
  if (sequence->purpose_ == SequencePurpose::kScore) {
    entry.logit_rows = rows - recomputed;
  } else if (end == sequence->token_count()) {
    entry.logit_rows = 1;
    entry.draws = true;
  }
  if (!sequence->decoding()) {
    batch->prefill_tokens += rows;
  }
  sequence->blocks_.Grow(end, pool_);
  sequence->recomputed_tokens_ += recomputed;
  sequence->scheduled_ = end;
  sequence->scheduled_max_ = std::max(sequence->scheduled_max_, end);
  sequence->sample_in_flight_ = entry.draws;
  sequence->last_step_ = batch->step;
  sequence->last_turn_ = ++turns_;
  ++sequence->plans_in_flight_;
  batch->tokens += rows;
  batch->logit_rows += entry.logit_rows;
  batch->entries.push_back(entry);
}

void Scheduler::Complete(const BatchEntry& entry) {
  CHECK_GT(entry.sequence->plans_in_flight_, 0);
  --entry.sequence->plans_in_flight_;
  if (entry.draws) {
    entry.sequence->sample_in_flight_ = false;
  }
}

void Scheduler::Append(Sequence* sequence, int32_t token_id) {
  CHECK(!sequence->sample_in_flight_);
  CHECK(sequence->phase_ == SequencePhase::kRunning || sequence->phase_ == SequencePhase::kWaiting);
  CHECK_LT(sequence->token_count(), limits_.context);
  sequence->tokens_.push_back(token_id);
}

void Scheduler::Remove(Sequence* sequence) {
  if (sequence->phase_ == SequencePhase::kWaiting) {
    Erase(&waiting_, sequence);
  } else {
    CHECK(sequence->phase_ == SequencePhase::kRunning);
    Erase(&running_, sequence);
    sequence->blocks_.Clear(pool_);
  }
  sequence->phase_ = SequencePhase::kEnded;
}

void Scheduler::RemoveExpired(absl::Time now, std::vector<Sequence*>* expired) {
  const size_t before = expired->size();
  for (const std::vector<Sequence*>* list : {&running_, &waiting_}) {
    for (Sequence* sequence : *list) {
      if (sequence->request_.deadline <= now) {
        expired->push_back(sequence);
      }
    }
  }
  for (size_t index = before; index < expired->size(); ++index) {
    Remove((*expired)[index]);
  }
}

absl::Time Scheduler::NextDeadline() const {
  absl::Time earliest = absl::InfiniteFuture();
  for (const std::vector<Sequence*>* list : {&running_, &waiting_}) {
    for (const Sequence* sequence : *list) {
      earliest = std::min(earliest, sequence->request_.deadline);
    }
  }
  return earliest;
}

int64_t Scheduler::queued_tokens() const {
  int64_t tokens = 0;
  for (const Sequence* sequence : waiting_) {
    tokens += sequence->token_count();
  }
  for (const Sequence* sequence : running_) {
    tokens += sequence->decoding() ? 0 : sequence->remaining();
  }
  return tokens;
}

int64_t Scheduler::running_tokens() const {
  int64_t tokens = 0;
  for (const Sequence* sequence : running_) {
    tokens += sequence->scheduled_;
  }
  return tokens;
}

}  // namespace trireme::schedule
