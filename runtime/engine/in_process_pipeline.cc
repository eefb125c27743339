#include "runtime/engine/in_process_pipeline.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/base/check.h"
#include "runtime/base/cpu_relax.h"

namespace trireme::engine {
namespace {

// About ten microseconds: the controller's turn between a result and the next plan is shorter than
// falling asleep and waking up.
constexpr int kSpins = 300;

}  // namespace

class InProcessPipeline::RankSource : public PlanSource {
 public:
  RankSource(InProcessPipeline* pipeline, int rank) : pipeline_(pipeline), rank_(rank) {}

  absl::Status ReceivePlan(StepPlan* plan) override {
    for (int spin = 0; spin < kSpins && !pipeline_->HasPlan(received_); ++spin) {
      CpuRelax();
    }
    const absl::Status status = pipeline_->Receive(rank_, plan);
    if (status.ok()) {
      ++received_;
    }
    return status;
  }

  absl::Status SendResult(StepResult& result) override {
    CHECK(pipeline_->on_result_ != nullptr);
    pipeline_->on_result_(std::move(result));
    return absl::OkStatus();
  }

 private:
  InProcessPipeline* const pipeline_;
  const int rank_;
  uint64_t received_ = 0;
};

InProcessPipeline::InProcessPipeline(int ranks, int depth, const StepLimits& limits)
    : depth_(depth) {
  CHECK_GT(ranks, 0);
  CHECK_GT(depth, 0);
  for (int rank = 0; rank < ranks; ++rank) {
    sources_.push_back(std::make_unique<RankSource>(this, rank));
  }
  // One place more than plans in flight: a shutdown fits whatever the ranks do.
  ring_.resize(static_cast<size_t>(depth) + 1);
  for (StepPlan& plan : ring_) {
    plan.Reserve(limits);
  }
  received_.resize(static_cast<size_t>(ranks), 0);
}

InProcessPipeline::~InProcessPipeline() = default;

void InProcessPipeline::SetHandlers(ResultHandler on_result, LossHandler on_loss) {
  on_result_ = std::move(on_result);
  on_loss_ = std::move(on_loss);
}

absl::Status InProcessPipeline::SendPlan(const StepPlan& plan) {
  MutexLock lock(&mutex_);
  if (closed_.load(std::memory_order_relaxed)) {
    return close_reason_;
  }
  const uint64_t sent = sent_.load(std::memory_order_relaxed);
  for (size_t rank = 0; rank < received_.size(); ++rank) {
    if (sent - received_[rank] >= ring_.size()) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("rank %d has not taken plan %d of %d; at most %d may lie in its queue",
                          rank, received_[rank] + 1, sent, ring_.size()));
    }
  }
  ring_[sent % ring_.size()] = plan;
  sent_.store(sent + 1, std::memory_order_release);
  plan_sent_.SignalAll();
  return absl::OkStatus();
}

PlanSource* InProcessPipeline::source(int rank) {
  CHECK_GE(rank, 0);
  CHECK_LT(static_cast<size_t>(rank), sources_.size());
  return sources_[static_cast<size_t>(rank)].get();
}

absl::Status InProcessPipeline::Receive(int rank, StepPlan* plan) {
  MutexLock lock(&mutex_);
  uint64_t& received = received_[static_cast<size_t>(rank)];
  while (!HasPlan(received)) {
    if (closed_.load(std::memory_order_relaxed)) {
      return close_reason_;
    }
    plan_sent_.Wait(&mutex_);
  }
  *plan = ring_[received % ring_.size()];
  ++received;
  return absl::OkStatus();
}

void InProcessPipeline::ReportLoss(const absl::Status& reason) {
  if (!lost_.exchange(true) && on_loss_ != nullptr) {
    on_loss_(reason);
  }
}

void InProcessPipeline::Close(const absl::Status& reason) {
  CHECK(!reason.ok());
  MutexLock lock(&mutex_);
  if (!closed_.exchange(true)) {
    close_reason_ = reason;
  }
  plan_sent_.SignalAll();
}

}  // namespace trireme::engine
