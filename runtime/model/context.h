// What every part of the forward pass works with: the table and the threads, the group to add
// partial sums over, the arrays of the step. One per rank, made once.
#ifndef TRIREME_RUNTIME_MODEL_CONTEXT_H_
#define TRIREME_RUNTIME_MODEL_CONTEXT_H_

#include "kernels/execution.h"
#include "kernels/kernel_table.h"
#include "runtime/comm/communicator.h"
#include "runtime/model/activations.h"
#include "runtime/model/expert_load.h"

namespace trireme::model {

enum class ActivationMode : uint8_t {
  kAuto,     // what the weights' format takes: kernels::ActivationKindOf
  kFloat32,  // decoded weights times float32 activations everywhere: slow, for checking
};

// Everything outlives the model that uses it.
struct Context {
  const kernels::KernelTable* table = nullptr;
  kernels::Execution execution;
  comm::Communicator* tensor_group = nullptr;
  Activations* activations = nullptr;
  ExpertLoad* expert_load = nullptr;  // may be null: not counted
  ActivationMode mode = ActivationMode::kAuto;
};

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_CONTEXT_H_
