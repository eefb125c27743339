// Decides what each step computes: continuous batching with chunked prefill in one token budget.
// Pure: no threads, clocks or sockets; what it does is a function of its state and the call.
//
//  * Sequences wait in order of arrival and are admitted in that order; the head is never
//  overtaken.
//  * A batch holds decodes first (one row each, the ones that waited longest first), then prefill
//    chunks of the oldest sequences, then new admissions, up to the token budget.
//  * Several plans may be in flight, one a pipeline stage. A sequence whose next token is being
//    drawn is not scheduled before that token is there; prefill chunks may follow each other in
//    consecutive plans. Decodes spread evenly over the plans, so that every stage has work.
//  * When blocks run out, the youngest sequence is preempted for the sake of an older one: its
//    blocks go, its tokens stay and are computed again later. The oldest sequence can always go on,
//    so nothing deadlocks; a sequence that cannot go on waits with its blocks.
//
// Which tokens come out depends on none of this: a row's result depends on its own sequence only.
//
// Thread rule: one thread.
#ifndef TRIREME_RUNTIME_SCHEDULE_SCHEDULER_H_
#define TRIREME_RUNTIME_SCHEDULE_SCHEDULER_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "runtime/cache/block_pool.h"
#include "runtime/schedule/sequence.h"

namespace trireme::schedule {

struct SchedulerLimits {
  int32_t tokens = 0;      // token budget of one batch
  int32_t sequences = 0;   // running at once
  int32_t logit_rows = 0;  // rows of one batch that need logits
  int32_t context = 0;     // positions of one sequence
  int32_t blocks = 0;      // KV blocks
  int32_t plans_in_flight_max = 1;
};

// Consecutive rows of one sequence in a batch.
struct BatchEntry {
  Sequence* sequence = nullptr;
  int32_t first_position = 0;
  int32_t rows = 0;
  int32_t logit_rows = 0;  // so many of the last rows need logits
  bool draws = false;      // the last row draws the next token
};

struct Batch {
  uint64_t step = 0;
  std::vector<BatchEntry> entries;
  int32_t tokens = 0;
  int32_t logit_rows = 0;
  int32_t prefill_tokens = 0;  // of `tokens`, those that are not one-row decodes

  void Clear();
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerLimits& limits);

  // Puts a new sequence at the end of the queue. It must be able to fit alone (ValidateRequest) and
  // outlive its phase and its plans in flight.
  void Add(Sequence* sequence);

  // Makes the batch of step `step`. False, with an empty batch, when nothing can run before a
  // result comes.
  bool Next(uint64_t step, Batch* batch);

  // The result of this entry's plan is there. Call it for each entry, in the order of the plans,
  // before Append or Remove of its sequence.
  void Complete(const BatchEntry& entry);

  // The token that an entry drew. The sequence may have been preempted meanwhile.
  void Append(Sequence* sequence, int32_t token_id);

  // The sequence is over: it leaves queue or batch and its blocks are free at once. Its plans in
  // flight still come to Complete.
  void Remove(Sequence* sequence);

  // Removes every sequence whose deadline is at or before `now` and appends it to *expired.
  void RemoveExpired(absl::Time now, std::vector<Sequence*>* expired);

  // The earliest deadline of all sequences.
  absl::Time NextDeadline() const;

  // Oldest first.
  const std::vector<Sequence*>& waiting() const { return waiting_; }
  const std::vector<Sequence*>& running() const { return running_; }
  const cache::BlockPool& pool() const { return pool_; }
  int64_t preemptions() const { return preemptions_; }
  // Known tokens that still have to be computed before sequences decode.
  int64_t queued_tokens() const;
  // Positions held in the cache.
  int64_t running_tokens() const;

 private:
  void AddDecodes(Batch* batch);
  bool PrefillWaits() const;
  void AddPrefills(Batch* batch);
  void Admit(Batch* batch);
  bool CanAdmit(const Sequence& sequence) const;
  int32_t RowsThatFit(const Sequence& sequence, const Batch& batch) const;
  int32_t RowsWithBlocks(const Sequence& sequence, int32_t rows) const;
  bool MakeRoom(const Sequence& sequence, const Batch& batch);
  void Preempt(Sequence* sequence);
  void AddEntry(Sequence* sequence, int32_t rows, Batch* batch);

  const SchedulerLimits limits_;
  cache::BlockPool pool_;
  std::vector<Sequence*> waiting_;  // by arrival
  std::vector<Sequence*> running_;  // by arrival
  std::vector<Sequence*> ready_;    // scratch of AddDecodes
  uint64_t arrivals_ = 0;
  uint64_t turns_ = 0;  // batch entries made
  int64_t preemptions_ = 0;
  bool preempted_in_this_batch_ = false;
};

}  // namespace trireme::schedule

#endif  // TRIREME_RUNTIME_SCHEDULE_SCHEDULER_H_
