#include "runtime/engine/plan_builder.h"

#include "absl/types/span.h"

namespace trireme::engine {
namespace {

using schedule::BatchEntry;
using schedule::Sequence;

void AppendRows(const BatchEntry& entry, StepPlan* plan) {
  const Sequence& sequence = *entry.sequence;
  const absl::Span<const int32_t> tokens = sequence.tokens();
  const int32_t end = entry.first_position + entry.rows;
  const absl::Span<const int32_t> blocks =
      sequence.blocks().blocks().subspan(0, static_cast<size_t>(cache::BlocksFor(end)));
  plan->sequences.push_back({.first_row = static_cast<int32_t>(plan->token_ids.size()),
                             .rows = entry.rows,
                             .first_position = entry.first_position,
                             .first_block = static_cast<int32_t>(plan->block_tables.size()),
                             .block_count = static_cast<int32_t>(blocks.size())});
  plan->block_tables.insert(plan->block_tables.end(), blocks.begin(), blocks.end());
  for (int32_t position = entry.first_position; position < end; ++position) {
    plan->token_ids.push_back(tokens[static_cast<size_t>(position)]);
    plan->positions.push_back(position);
    plan->slots.push_back(sequence.blocks().Slot(position));
  }
}

void AppendLogitRows(const BatchEntry& entry, StepPlan* plan) {
  const Sequence& sequence = *entry.sequence;
  const auto end_row = static_cast<int32_t>(plan->token_ids.size());
  for (int32_t row = end_row - entry.logit_rows; row < end_row; ++row) {
    plan->logit_rows.push_back(row);
  }
  if (entry.draws) {
    plan->samples.push_back({.logit_index = static_cast<int32_t>(plan->logit_rows.size()) - 1,
                             .choice = sequence.request().choice,
                             .position = sequence.generated_tokens(),
                             .sampling = sequence.request().sampling,
                             .want_logprob = sequence.request().want_logprobs});
  }
  if (sequence.purpose() == schedule::SequencePurpose::kScore && entry.logit_rows > 0) {
    plan->want_logits = true;
  }
}

}  // namespace

void BuildPlan(const schedule::Batch& batch, StepPlan* plan) {
  plan->Clear();
  plan->step = batch.step;
  for (const BatchEntry& entry : batch.entries) {
    AppendRows(entry, plan);
    AppendLogitRows(entry, plan);
  }
}

}  // namespace trireme::engine
