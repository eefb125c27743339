// The engine thread's work: mail in, plans out, until a reason to stop comes. Owns scheduler,
// sequences and plans in flight without a lock.
#ifndef TRIREME_RUNTIME_ENGINE_CONTROLLER_LOOP_H_
#define TRIREME_RUNTIME_ENGINE_CONTROLLER_LOOP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/engine/controller.h"
#include "runtime/engine/controller_mailbox.h"
#include "runtime/engine/live_request.h"
#include "runtime/engine/load_board.h"
#include "runtime/engine/pipeline.h"
#include "runtime/schedule/scheduler.h"

namespace trireme::engine {

class ControllerLoop {
 public:
  // All pointers outlive the loop.
  ControllerLoop(const ControllerOptions& options, Pipeline* pipeline, Clock* clock,
                 ControllerMailbox* mailbox, LoadBoard* board);

  // Runs until the mailbox is stopped, a rank is lost or a step stalls. Every stream has ended when
  // it returns, and the ranks have been sent a shutdown.
  void Run();

 private:
  struct PlanInFlight {
    schedule::Batch batch;
    bool want_logits = false;
    absl::Time sent_time;
  };

  // Each gives the reason to stop, if there is one.
  absl::Status TakeResults();
  absl::Status TakeResult(const StepResult& result);
  absl::Status CheckResult(const StepResult& result, const PlanInFlight& plan) const;
  absl::Status CheckTokensAndFaults(const StepResult& result, const schedule::Batch& batch) const;
  absl::Status CheckStall() const;
  absl::Status SendPlans();

  void TakeRequests();
  void RemoveCancelled();
  void RemoveExpired();
  void EndFaulty(LiveRequest* live, int32_t place);
  void TakeToken(LiveRequest* live, int32_t token_id, float logprob);
  void TakeLogits(LiveRequest* live, const schedule::BatchEntry& entry, const float* logits);
  void End(LiveRequest* live);
  void EndWithError(LiveRequest* live, const absl::Status& status);
  void DestroyEnded();
  void Publish();
  void CallIdleCallbacks();
  void Finish(const absl::Status& reason);
  absl::Duration TimeToNextEvent() const;
  PlanInFlight& Oldest() { return plans_[oldest_plan_]; }

  const ControllerOptions options_;
  Pipeline* const pipeline_;
  Clock* const clock_;
  ControllerMailbox* const mailbox_;
  LoadBoard* const board_;

  schedule::Scheduler scheduler_;
  std::vector<std::unique_ptr<LiveRequest>> live_;  // until ended and out of all plans
  std::vector<schedule::Sequence*> expired_;        // scratch
  ControllerMail mail_;
  StepPlan plan_;
  std::vector<PlanInFlight> plans_;  // a ring of pipeline depth
  size_t oldest_plan_ = 0;
  size_t plans_in_flight_ = 0;
  uint64_t steps_sent_ = 0;
  uint64_t steps_finished_ = 0;
  absl::Time now_;
  absl::Time progress_time_;  // latest result, or the plan that ended an idle time
};

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_CONTROLLER_LOOP_H_
