// Writes a scheduled batch down as a complete plan.
#ifndef TRIREME_RUNTIME_ENGINE_PLAN_BUILDER_H_
#define TRIREME_RUNTIME_ENGINE_PLAN_BUILDER_H_

#include "runtime/engine/step.h"
#include "runtime/schedule/scheduler.h"

namespace trireme::engine {

// Replaces *plan; called before the scheduler changes again. Samples stand in the order of the
// entries that draw. want_logits is set when a sequence is scored.
void BuildPlan(const schedule::Batch& batch, StepPlan* plan);

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_PLAN_BUILDER_H_
