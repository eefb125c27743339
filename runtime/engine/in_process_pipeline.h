// The road of plans and results when all ranks are threads of one process. Plans lie in one ring
// that every rank reads at its own pace; a waiting rank spins for some microseconds and then
// sleeps.
#ifndef TRIREME_RUNTIME_ENGINE_IN_PROCESS_PIPELINE_H_
#define TRIREME_RUNTIME_ENGINE_IN_PROCESS_PIPELINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/pipeline.h"

namespace trireme::engine {

class InProcessPipeline : public Pipeline {
 public:
  // `depth` plans in flight at once; `ranks` threads receive each plan. Memory for plans within
  // `limits` is taken here; larger ones work too.
  InProcessPipeline(int ranks, int depth, const StepLimits& limits = {});
  ~InProcessPipeline() override;

  int depth() const override { return depth_; }
  void SetHandlers(ResultHandler on_result, LossHandler on_loss) override;
  // ResourceExhausted when a rank has not taken the plan that lay in this place, depth + 1 plans
  // ago; Unavailable after Close.
  absl::Status SendPlan(const StepPlan& plan) override;

  // The rank's end; lives as long as the pipeline, used by one thread.
  PlanSource* source(int rank);

  // A rank cannot go on: tells the controller, the first time only. Any thread.
  void ReportLoss(const absl::Status& reason);

  // Every ReceivePlan that finds no plan returns `reason` from now on. Any thread.
  void Close(const absl::Status& reason);

 private:
  class RankSource;

  bool HasPlan(uint64_t received) const { return sent_.load(std::memory_order_acquire) > received; }
  absl::Status Receive(int rank, StepPlan* plan);

  const int depth_;
  std::vector<std::unique_ptr<RankSource>> sources_;
  ResultHandler on_result_;
  LossHandler on_loss_;
  std::atomic<bool> lost_{false};
  std::atomic<uint64_t> sent_{0};  // plans; written with mutex_ held
  std::atomic<bool> closed_{false};
  Mutex mutex_;
  ConditionVariable plan_sent_;
  std::vector<StepPlan> ring_ ABSL_GUARDED_BY(mutex_);      // plan i lies in place i mod size
  std::vector<uint64_t> received_ ABSL_GUARDED_BY(mutex_);  // [ranks]: plans
  absl::Status close_reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_IN_PROCESS_PIPELINE_H_
