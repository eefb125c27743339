#include "runtime/engine/worker.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/kernel_table.h"
#include "runtime/base/log.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/step.h"
#include "runtime/model/batch.h"
#include "runtime/sample/sampler.h"

namespace trireme::engine {
namespace {

// Whether this rank draws tokens: one of the last stage does, for all.
bool Samples(const topology::RankPart& part) { return part.last_stage && part.tensor_rank == 0; }

absl::Span<std::byte> BytesOf(absl::Span<float> values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace

Worker::Worker(const WorkerOptions& options, model::Stage* stage, const RankLinks& links)
    : options_(options),
      stage_(stage),
      links_(links),
      sampler_(Samples(options.part) ? options.vocabulary : 0) {
  slots_.reserve(options.limits.tokens);
  sequences_.reserve(options.limits.sequences);
}

absl::Status Worker::Run() {
  StepPlan plan;
  plan.Reserve(options_.limits);
  for (;;) {
    RETURN_IF_ERROR(links_.plans->ReceivePlan(&plan));
    if (plan.kind == PlanKind::kShutdown) {
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(ValidateStepPlan(plan, options_.limits, options_.vocabulary));
    options_.progress->is_computing.store(true, std::memory_order_relaxed);
    if (links_.before_step) {
      RETURN_IF_ERROR(links_.before_step(plan));
    }
    RETURN_IF_ERROR(RunStep(plan));
    options_.progress->is_computing.store(false, std::memory_order_relaxed);
    options_.progress->steps_finished.store(plan.step, std::memory_order_relaxed);
  }
}

void Worker::Prepare(const StepPlan& plan) {
  slots_.assign(plan.slots.begin(), plan.slots.end());
  sequences_.clear();
  for (const PlanSequence& sequence : plan.sequences) {
    sequences_.push_back({.first_row = sequence.first_row,
                          .rows = sequence.rows,
                          .first_position = sequence.first_position,
                          .block_table = plan.block_tables.data() + sequence.first_block});
  }
  batch_ = {.token_ids = plan.token_ids,
            .positions = plan.positions,
            .slots = slots_,
            .sequences = sequences_,
            .logit_rows = plan.logit_rows};
}

absl::Status Worker::RunStep(const StepPlan& plan) {
  Prepare(plan);
  const topology::RankPart& part = options_.part;
  if (part.first_stage) {
    RETURN_IF_ERROR(stage_->Embed(batch_));
  } else {
    RETURN_IF_ERROR(
        links_.pipeline->Receive(*links_.previous_rank, BytesOf(stage_->Residual(batch_))));
  }
  RETURN_IF_ERROR(stage_->RunLayers(batch_));
  if (!part.last_stage) {
    return links_.pipeline->Send(*links_.next_rank, BytesOf(stage_->Residual(batch_)));
  }
  return Answer(plan);
}

absl::Status Worker::Answer(const StepPlan& plan) {
  absl::Span<const float> logits;
  if (!plan.logit_rows.empty()) {
    ASSIGN_OR_RETURN(logits, stage_->Logits(batch_));
  }
  if (!Samples(options_.part)) {
    return absl::OkStatus();
  }
  result_.Clear();
  result_.step = plan.step;
  RETURN_IF_ERROR(Sample(plan, logits));
  if (plan.want_logits) {
    result_.logits.assign(logits.begin(), logits.end());
  }
  return links_.plans->SendResult(result_);
}

absl::Status Worker::Sample(const StepPlan& plan, absl::Span<const float> logits) {
  for (const PlanSample& sample : plan.samples) {
    const absl::Span<const float> row =
        logits.subspan(static_cast<size_t>(sample.logit_index * options_.vocabulary),
                       static_cast<size_t>(options_.vocabulary));
    const absl::StatusOr<sample::Sampled> drawn = sampler_.Sample(
        row, sample.sampling, {.choice = sample.choice, .position = sample.position},
        sample.want_logprob);
    if (!drawn.ok()) {
      // Logits that are no numbers end the one request that has them (kNoToken); the others go on.
      Log(LogLevel::kError, drawn.status().message());
    }
    result_.token_ids.push_back(drawn.ok() ? drawn->token_id : kNoToken);
    result_.logprobs.push_back(drawn.ok() ? drawn->logprob : 0);
  }
  return absl::OkStatus();
}

}  // namespace trireme::engine
