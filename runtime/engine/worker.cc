#include "runtime/engine/worker.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/kernel_table.h"
#include "runtime/base/log.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/step.h"
#include "runtime/model/batch.h"
#include "runtime/model/row_faults.h"
#include "runtime/sample/sampler.h"
#include "runtime/weights/finite_scan.h"

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
  faults_.reserve(options.limits.sequences);
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
  FindSequenceFaults(plan, logits);
  Sample(plan, logits);
  ReportFaults();
  if (plan.want_logits) {
    result_.logits.assign(logits.begin(), logits.end());
  }
  return links_.plans->SendResult(result_);
}

absl::Span<const float> Worker::LogitsOfRow(absl::Span<const float> logits,
                                            size_t logit_index) const {
  const auto vocabulary = static_cast<size_t>(options_.vocabulary);
  return logits.subspan(logit_index * vocabulary, vocabulary);
}

int32_t& Worker::FaultOf(const StepPlan& plan, size_t logit_index) {
  const int32_t row = plan.logit_rows[logit_index];
  const auto after = std::upper_bound(
      plan.sequences.begin(), plan.sequences.end(), row,
      [](int32_t value, const PlanSequence& sequence) { return value < sequence.first_row; });
  return faults_[static_cast<size_t>(after - plan.sequences.begin()) - 1];
}

// Of logits that are drawn from the sampler looks at each; those that go out are looked at here.
void Worker::FindSequenceFaults(const StepPlan& plan, absl::Span<const float> logits) {
  const absl::Span<const int32_t> rows = stage_->Faults(batch_);
  faults_.clear();
  for (const PlanSequence& sequence : plan.sequences) {
    const auto first = rows.begin() + sequence.first_row;
    faults_.push_back(*std::min_element(first, first + sequence.rows));
  }
  for (size_t index = 0; plan.want_logits && index < plan.logit_rows.size(); ++index) {
    int32_t& fault = FaultOf(plan, index);
    if (fault == model::kNoFault && !weights::AreFinite(LogitsOfRow(logits, index))) {
      fault = model::kFaultInOutput;
    }
  }
}

void Worker::Sample(const StepPlan& plan, absl::Span<const float> logits) {
  for (const PlanSample& sample : plan.samples) {
    const auto logit_index = static_cast<size_t>(sample.logit_index);
    int32_t& fault = FaultOf(plan, logit_index);
    sample::Sampled sampled{.token_id = kNoToken};
    if (fault == model::kNoFault) {
      const absl::StatusOr<sample::Sampled> drawn = sampler_.Sample(
          LogitsOfRow(logits, logit_index), sample.sampling,
          {.choice = sample.choice, .position = sample.position}, sample.want_logprob);
      if (drawn.ok()) {
        sampled = *drawn;
      } else {
        Log(LogLevel::kError, drawn.status().message());
        fault = model::kFaultInOutput;
      }
    }
    result_.token_ids.push_back(sampled.token_id);
    result_.logprobs.push_back(sampled.logprob);
  }
}

void Worker::ReportFaults() {
  for (size_t index = 0; index < faults_.size(); ++index) {
    if (faults_[index] != model::kNoFault) {
      result_.faults.push_back({.sequence = static_cast<int32_t>(index), .place = faults_[index]});
    }
  }
}

}  // namespace trireme::engine
