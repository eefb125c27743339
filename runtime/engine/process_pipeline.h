// The road of plans and results when each rank is a process: plans go from rank 0 to all over the
// control group (own sockets, never MPI, so a waiting rank sleeps), results come back from the last
// stage. Rank 0's own worker is a thread beside the controller and gets its plans in memory.
#ifndef TRIREME_RUNTIME_ENGINE_PROCESS_PIPELINE_H_
#define TRIREME_RUNTIME_ENGINE_PROCESS_PIPELINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "runtime/comm/communicator.h"
#include "runtime/engine/in_process_pipeline.h"
#include "runtime/engine/pipeline.h"
#include "runtime/engine/step.h"

namespace trireme::engine {

// Rank 0's end. The control group outlives it.
class ProcessPipeline : public Pipeline {
 public:
  struct Hooks {
    // Hears of each step before it is sent.
    std::function<void(uint64_t step)> on_plan;
    // Turns the failure of a transfer into who is to blame for it; may block.
    std::function<absl::Status(const absl::Status&)> explain;
  };

  // `result_rank` answers plans: the first tensor rank of the last stage.
  ProcessPipeline(comm::Communicator* control, int stages, int result_rank,
                  const StepLimits& limits, Hooks hooks);

  // Ends the result reader; the control group must have been aborted or all ranks have left.
  ~ProcessPipeline() override;

  int depth() const override { return local_.depth(); }
  void SetHandlers(ResultHandler on_result, LossHandler on_loss) override;
  absl::Status SendPlan(const StepPlan& plan) override;

  // For rank 0's worker.
  PlanSource* local_source() { return local_.source(0); }

  // Any thread; the controller hears of the first loss only.
  void ReportLoss(const absl::Status& reason);

  // Tells every rank, the local one too, to leave its loop. By the thread that sends plans, after
  // the last one.
  absl::Status SendShutdown();

  // Wakes the local worker with `reason`.
  void Close(const absl::Status& reason);

 private:
  absl::Status SendTo(int rank);
  void ReadResults();

  comm::Communicator* const control_;
  const int result_rank_;
  const Hooks hooks_;
  InProcessPipeline local_;
  ResultHandler on_result_;
  std::string plan_bytes_;  // reused
  std::thread result_reader_;
};

// The end of every other rank. Memory for plans within `limits` is taken here; larger ones work
// too.
std::unique_ptr<PlanSource> MakeProcessPlanSource(comm::Communicator* control,
                                                  const StepLimits& limits);

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_PROCESS_PIPELINE_H_
