// The loop of one rank: receive a plan, run its layers, hand on. A worker keeps no state between
// steps but weights and KV.
#ifndef TRIREME_RUNTIME_ENGINE_WORKER_H_
#define TRIREME_RUNTIME_ENGINE_WORKER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "kernels/kernel_table.h"
#include "runtime/comm/communicator.h"
#include "runtime/engine/pipeline.h"
#include "runtime/engine/step.h"
#include "runtime/model/stage.h"
#include "runtime/sample/sampler.h"
#include "topology/partition.h"

namespace trireme::engine {

// What others may see of a worker while it runs. Outlives it.
struct WorkerProgress {
  std::atomic<uint64_t> steps_finished{0};
  std::atomic<bool> is_computing{false};
};

// Called on the rank's thread before each step; an error ends the replica. For fault injection.
using StepHook = std::function<absl::Status(const StepPlan& plan)>;

// How a rank reaches the others. All outlive the worker; the communicators are used by its thread
// only.
struct RankLinks {
  comm::Communicator* tensor = nullptr;    // the ranks of this stage
  comm::Communicator* pipeline = nullptr;  // all ranks of the replica
  std::optional<int>
      previous_rank;  // in `pipeline`: same tensor index, stage before; none at the first
  std::optional<int> next_rank;  // none at the last stage
  PlanSource* plans = nullptr;
  StepHook before_step;  // null: none
};

struct WorkerOptions {
  topology::RankPart part;
  StepLimits limits;
  int64_t vocabulary = 0;
  WorkerProgress* progress = nullptr;
};

// Thread rule: one thread.
class Worker {
 public:
  // `stage` outlives the worker.
  Worker(const WorkerOptions& options, model::Stage* stage, const RankLinks& links);

  // Runs plans until one says kShutdown (OK) or something fails; a failed worker ends its replica.
  absl::Status Run();

 private:
  absl::Status RunStep(const StepPlan& plan);
  void Prepare(const StepPlan& plan);
  absl::Status Answer(const StepPlan& plan);
  void Sample(const StepPlan& plan, absl::Span<const float> logits);
  absl::Span<const float> LogitsOfRow(absl::Span<const float> logits, size_t logit_index) const;
  // Of the sequence that has the logit row.
  int32_t& FaultOf(const StepPlan& plan, size_t logit_index);
  void FindSequenceFaults(const StepPlan& plan, absl::Span<const float> logits);
  void ReportFaults();

  const WorkerOptions options_;
  model::Stage* const stage_;
  const RankLinks links_;
  sample::Sampler sampler_;
  // Reused from step to step.
  std::vector<int64_t> slots_;
  std::vector<kernels::AttentionSequence> sequences_;
  model::Batch batch_;
  std::vector<int32_t> faults_;  // [sequences of the plan]: model/row_faults.h
  StepResult result_;
};

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_WORKER_H_
