// The two ends of the road that plans and results travel: the controller's (Pipeline) and a rank's
// (PlanSource). In one process it is a pair of queues (in_process_pipeline); between processes the
// plan link of runtime/comm.
#ifndef TRIREME_RUNTIME_ENGINE_PIPELINE_H_
#define TRIREME_RUNTIME_ENGINE_PIPELINE_H_

#include <functional>

#include "absl/status/status.h"
#include "runtime/engine/step.h"

namespace trireme::engine {

class Pipeline {
 public:
  using ResultHandler = std::function<void(StepResult&& result)>;
  using LossHandler = std::function<void(const absl::Status& reason)>;
  virtual ~Pipeline() = default;

  // Plans in flight at once that keep every stage busy: the number of stages.
  virtual int depth() const = 0;

  // Results come, in the order of the plans, on a thread of the pipeline; a lost rank is reported
  // once and ends the replica. Set before the first SendPlan.
  virtual void SetHandlers(ResultHandler on_result, LossHandler on_loss) = 0;

  // Hands the plan to every rank, in order. Called by the engine thread only; the plan may be
  // reused on return.
  virtual absl::Status SendPlan(const StepPlan& plan) = 0;
};

class PlanSource {
 public:
  virtual ~PlanSource() = default;

  // Blocks (asleep, not spinning beyond some microseconds) until the next plan is there and writes
  // it to *plan.
  virtual absl::Status ReceivePlan(StepPlan* plan) = 0;

  // The last stage's tensor rank 0 answers each compute plan once.
  virtual absl::Status SendResult(StepResult& result) = 0;
};

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_PIPELINE_H_
