#include "runtime/engine/step.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "runtime/base/status_macros.h"
#include "runtime/cache/block_pool.h"

namespace trireme::engine {
namespace {

absl::Status CheckCount(absl::string_view what, int64_t count, int64_t least, int64_t most) {
  if (count >= least && count <= most) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("plan: %d %s; wanted %d to %d", count, what, least, most));
}

// Index `index` of array `what` has a value outside [least, most].
absl::Status CheckValue(absl::string_view what, size_t index, int64_t value, int64_t least,
                        int64_t most) {
  if (value >= least && value <= most) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("plan: %s[%d] is %d; wanted %d to %d", what, index, value, least, most));
}

absl::Status CheckSizes(const StepPlan& plan, const StepLimits& limits) {
  const auto tokens = static_cast<int64_t>(plan.token_ids.size());
  RETURN_IF_ERROR(CheckCount("tokens", tokens, 1, limits.tokens));
  RETURN_IF_ERROR(
      CheckCount("positions", static_cast<int64_t>(plan.positions.size()), tokens, tokens));
  RETURN_IF_ERROR(CheckCount("slots", static_cast<int64_t>(plan.slots.size()), tokens, tokens));
  RETURN_IF_ERROR(
      CheckCount("sequences", static_cast<int64_t>(plan.sequences.size()), 1, limits.sequences));
  RETURN_IF_ERROR(
      CheckCount("logit rows", static_cast<int64_t>(plan.logit_rows.size()), 0, limits.logit_rows));
  return CheckCount("samples", static_cast<int64_t>(plan.samples.size()), 0,
                    static_cast<int64_t>(plan.logit_rows.size()));
}

absl::Status CheckRows(const StepPlan& plan, const PlanSequence& sequence) {
  for (int32_t index = 0; index < sequence.rows; ++index) {
    const auto row = static_cast<size_t>(sequence.first_row + index);
    const int32_t position = sequence.first_position + index;
    RETURN_IF_ERROR(CheckValue("positions", row, plan.positions[row], position, position));
    const auto block_index =
        static_cast<size_t>(sequence.first_block + position / cache::kBlockTokens);
    const int64_t slot =
        static_cast<int64_t>(plan.block_tables[block_index]) * cache::kBlockTokens +
        position % cache::kBlockTokens;
    RETURN_IF_ERROR(CheckValue("slots", row, plan.slots[row], slot, slot));
  }
  return absl::OkStatus();
}

absl::Status CheckSequences(const StepPlan& plan, const StepLimits& limits) {
  const auto tokens = static_cast<int64_t>(plan.token_ids.size());
  const auto blocks = static_cast<int64_t>(plan.block_tables.size());
  int64_t next_row = 0;
  int64_t next_block = 0;
  for (size_t index = 0; index < plan.sequences.size(); ++index) {
    const PlanSequence& sequence = plan.sequences[index];
    RETURN_IF_ERROR(
        CheckValue("sequences.first_row", index, sequence.first_row, next_row, next_row));
    RETURN_IF_ERROR(CheckValue("sequences.rows", index, sequence.rows, 1, tokens - next_row));
    RETURN_IF_ERROR(CheckValue("sequences.first_position", index, sequence.first_position, 0,
                               int64_t{limits.context} - sequence.rows));
    RETURN_IF_ERROR(
        CheckValue("sequences.first_block", index, sequence.first_block, next_block, next_block));
    const int64_t needed = cache::BlocksFor(int64_t{sequence.first_position} + sequence.rows);
    RETURN_IF_ERROR(
        CheckValue("sequences.block_count", index, sequence.block_count, needed, needed));
    RETURN_IF_ERROR(
        CheckValue("sequences.block_count", index, sequence.block_count, 1, blocks - next_block));
    next_row += sequence.rows;
    next_block += sequence.block_count;
    RETURN_IF_ERROR(CheckRows(plan, sequence));
  }
  RETURN_IF_ERROR(CheckCount("rows of sequences", next_row, tokens, tokens));
  return CheckCount("blocks in tables", blocks, next_block, next_block);
}

absl::Status CheckSamples(const StepPlan& plan) {
  for (size_t index = 0; index < plan.samples.size(); ++index) {
    const PlanSample& sample = plan.samples[index];
    RETURN_IF_ERROR(CheckValue("samples.logit_index", index, sample.logit_index, 0,
                               static_cast<int64_t>(plan.logit_rows.size()) - 1));
    RETURN_IF_ERROR(CheckValue("samples.position", index, sample.position, 0, int64_t{1} << 40));
    RETURN_IF_ERROR(sample::ValidateSamplingOptions(sample.sampling));
  }
  return absl::OkStatus();
}

}  // namespace

void StepPlan::Clear() {
  kind = PlanKind::kCompute;
  step = 0;
  token_ids.clear();
  positions.clear();
  slots.clear();
  sequences.clear();
  block_tables.clear();
  logit_rows.clear();
  samples.clear();
  want_logits = false;
}

void StepPlan::Reserve(const StepLimits& limits) {
  const auto tokens = static_cast<size_t>(limits.tokens);
  token_ids.reserve(tokens);
  positions.reserve(tokens);
  slots.reserve(tokens);
  sequences.reserve(static_cast<size_t>(limits.sequences));
  const int64_t blocks =
      std::min<int64_t>(limits.blocks, limits.sequences * cache::BlocksFor(limits.context));
  block_tables.reserve(static_cast<size_t>(blocks));
  logit_rows.reserve(static_cast<size_t>(limits.logit_rows));
  samples.reserve(static_cast<size_t>(limits.logit_rows));
}

void StepResult::Clear() {
  step = 0;
  status = absl::OkStatus();
  token_ids.clear();
  logprobs.clear();
  logits.clear();
  faults.clear();
}

absl::Status ValidateStepPlan(const StepPlan& plan, const StepLimits& limits, int64_t vocabulary) {
  if (plan.kind == PlanKind::kShutdown) {
    return CheckCount("tokens in a shutdown", static_cast<int64_t>(plan.token_ids.size()), 0, 0);
  }
  if (plan.step == 0) {
    return absl::InvalidArgumentError("plan: step is 0; steps count from 1");
  }
  RETURN_IF_ERROR(CheckSizes(plan, limits));
  for (size_t row = 0; row < plan.token_ids.size(); ++row) {
    RETURN_IF_ERROR(CheckValue("token_ids", row, plan.token_ids[row], 0, vocabulary - 1));
  }
  for (size_t index = 0; index < plan.block_tables.size(); ++index) {
    RETURN_IF_ERROR(
        CheckValue("block_tables", index, plan.block_tables[index], 0, int64_t{limits.blocks} - 1));
  }
  RETURN_IF_ERROR(CheckSequences(plan, limits));
  int64_t least_row = 0;
  for (size_t index = 0; index < plan.logit_rows.size(); ++index) {
    RETURN_IF_ERROR(CheckValue("logit_rows", index, plan.logit_rows[index], least_row,
                               static_cast<int64_t>(plan.token_ids.size()) - 1));
    least_row = int64_t{plan.logit_rows[index]} + 1;
  }
  return CheckSamples(plan);
}

}  // namespace trireme::engine
