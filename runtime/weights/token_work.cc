#include "runtime/weights/token_work.h"

#include <cstdint>

#include "runtime/spec/tensor_roles.h"

namespace trireme::weights {
namespace {

// Only the first `used` of a layer's experts are counted: they stand for those that are chosen.
bool IsRead(const PlannedTensor& tensor, const spec::ModelSpec& model) {
  switch (spec::RoleOf(tensor.role).place) {
    case spec::Place::kEveryExpert:
      return tensor.index < model.layers[tensor.layer].feed_forward.experts->used;
    case spec::Place::kFirstStage:
      return false;
    case spec::Place::kLastStage:
    case spec::Place::kEveryLayer:
    case spec::Place::kEveryHead:
      return true;
  }
  return true;
}

void Add(const TokenWork& work, TokenWork* sum) {
  sum->bytes += work.bytes;
  for (size_t kind = 0; kind < work.products.size(); ++kind) {
    sum->products[kind] += work.products[kind];
  }
}

}  // namespace

TokenWork WorkOf(const PlannedTensor& tensor, const spec::ModelSpec& model) {
  TokenWork work;
  if (!IsRead(tensor, model)) {
    return work;
  }
  for (const PlannedSlice& slice : tensor.slices) {
    work.bytes += slice.arena_bytes;
    const auto kind =
        static_cast<size_t>(kernels::ActivationKindOf(kernels::InfoOf(slice.shape.format)));
    work.products[kind] += tensor.is_vector ? 0 : slice.shape.rows * slice.shape.columns;
  }
  return work;
}

TokenWork LayerWork(const ShardPlan& plan, const spec::ModelSpec& model) {
  TokenWork sum;
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.layer >= 0) {
      Add(WorkOf(tensor, model), &sum);
    }
  }
  return sum;
}

TokenWork DecodeWork(const ShardPlan& plan, const spec::ModelSpec& model) {
  TokenWork sum;
  for (const PlannedTensor& tensor : plan.tensors) {
    Add(WorkOf(tensor, model), &sum);
  }
  return sum;
}

}  // namespace trireme::weights
