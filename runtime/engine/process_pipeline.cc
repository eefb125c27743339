#include "runtime/engine/process_pipeline.h"

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/message.h"
#include "runtime/engine/step.h"

namespace trireme::engine {
namespace {

// A step of 65,536 tokens with all their tables stays far below; a result may carry logits.
constexpr int64_t kMessageBytesMax = int64_t{4} << 30;

// Plans grow with the sequences' block tables: memory for the longest one is taken at once, so that
// no step has to.
void ReserveForPlans(const StepLimits& limits, std::string* bytes) {
  StepPlan plan;
  plan.Reserve(limits);
  for (std::vector<int32_t>* const array :
       {&plan.token_ids, &plan.positions, &plan.slots, &plan.block_tables, &plan.logit_rows}) {
    array->resize(array->capacity());
  }
  // Fields of these are left out where they are zero.
  plan.sequences.resize(
      plan.sequences.capacity(),
      {.first_row = 1, .rows = 1, .first_position = 1, .first_block = 1, .block_count = 1});
  plan.samples.resize(
      plan.samples.capacity(),
      {.logit_index = 1,
       .choice = 1,
       .position = 1,
       .sampling = {.temperature = 1.0f, .top_k = 1, .top_p = 1.0f, .min_p = 1.0f, .seed = 1},
       .want_logprob = true});
  plan.step = 1;
  plan.want_logits = true;
  EncodeStepPlan(plan, bytes);
}

class ProcessPlanSource : public PlanSource {
 public:
  ProcessPlanSource(comm::Communicator* control, const StepLimits& limits) : control_(*control) {
    ReserveForPlans(limits, &bytes_);
  }

  absl::Status ReceivePlan(StepPlan* plan) override {
    RETURN_IF_ERROR(comm::ReceiveMessage(control_, /*peer=*/0, kMessageBytesMax, bytes_));
    return DecodeStepPlan(bytes_, plan);
  }

  absl::Status SendResult(StepResult& result) override {
    EncodeStepResult(result, &bytes_);
    return comm::SendMessage(control_, /*peer=*/0, bytes_);
  }

 private:
  comm::Communicator& control_;
  std::string bytes_;  // reused
};

}  // namespace

ProcessPipeline::ProcessPipeline(comm::Communicator* control, int stages, int result_rank,
                                 const StepLimits& limits, Hooks hooks)
    : control_(control),
      result_rank_(result_rank),
      hooks_(std::move(hooks)),
      local_(/*ranks=*/1, stages, limits) {
  ReserveForPlans(limits, &plan_bytes_);
}

ProcessPipeline::~ProcessPipeline() {
  if (result_reader_.joinable()) {
    result_reader_.join();
  }
}

void ProcessPipeline::SetHandlers(ResultHandler on_result, LossHandler on_loss) {
  on_result_ = on_result;
  local_.SetHandlers(std::move(on_result), std::move(on_loss));
  if (result_rank_ != 0 && !result_reader_.joinable()) {
    result_reader_ = std::thread([this] { ReadResults(); });
  }
}

absl::Status ProcessPipeline::SendTo(int rank) {
  return hooks_.explain(comm::SendMessage(*control_, rank, plan_bytes_));
}

absl::Status ProcessPipeline::SendPlan(const StepPlan& plan) {
  if (plan.kind == PlanKind::kCompute) {
    hooks_.on_plan(plan.step);
  }
  EncodeStepPlan(plan, &plan_bytes_);
  // The rank that answers comes last: it may leave as soon as it has a shutdown, which ends the
  // control group for the result reader, and with it what is still to be sent.
  for (int rank = 1; rank < control_->size(); ++rank) {
    if (rank != result_rank_) {
      RETURN_IF_ERROR(SendTo(rank));
    }
  }
  if (result_rank_ != 0) {
    RETURN_IF_ERROR(SendTo(result_rank_));
  }
  return local_.SendPlan(plan);
}

absl::Status ProcessPipeline::SendShutdown() {
  StepPlan plan;
  plan.kind = PlanKind::kShutdown;
  return SendPlan(plan);
}

void ProcessPipeline::ReportLoss(const absl::Status& reason) { local_.ReportLoss(reason); }

void ProcessPipeline::Close(const absl::Status& reason) { local_.Close(reason); }

void ProcessPipeline::ReadResults() {
  std::string bytes;
  StepResult result;
  for (;;) {
    absl::Status status =
        hooks_.explain(comm::ReceiveMessage(*control_, result_rank_, kMessageBytesMax, bytes));
    if (status.ok()) {
      status = DecodeStepResult(bytes, &result);
    }
    if (!status.ok()) {
      ReportLoss(status);
      return;
    }
    on_result_(std::move(result));
  }
}

std::unique_ptr<PlanSource> MakeProcessPlanSource(comm::Communicator* control,
                                                  const StepLimits& limits) {
  return std::make_unique<ProcessPlanSource>(control, limits);
}

}  // namespace trireme::engine
