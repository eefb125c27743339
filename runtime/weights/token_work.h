// What one token costs on a rank, from the plan of its shard: the bytes that a decoded token reads
// and the products that it takes. Of a mixture's experts, those that serve a token count; of the
// embedding one row is read, which is nothing beside the rest.
#ifndef TRIREME_RUNTIME_WEIGHTS_TOKEN_WORK_H_
#define TRIREME_RUNTIME_WEIGHTS_TOKEN_WORK_H_

#include <array>
#include <cstdint>
#include <numeric>

#include "kernels/formats/weight_format.h"
#include "runtime/spec/model_spec.h"
#include "runtime/weights/shard_plan.h"

namespace trireme::weights {

struct TokenWork {
  // Exact wherever all experts of a layer take equally many bytes, as all published ones do.
  int64_t bytes = 0;
  // Of a weight and an activation, by the kernels::ActivationKind that the weights take.
  std::array<int64_t, kernels::kActivationKindCount> products = {};

  int64_t AllProducts() const {
    return std::accumulate(products.begin(), products.end(), int64_t{0});
  }
};

TokenWork WorkOf(const PlannedTensor& tensor, const spec::ModelSpec& model);

// Of all layers of the shard, without the output matrix: what a prompt's token costs.
TokenWork LayerWork(const ShardPlan& plan, const spec::ModelSpec& model);

// Of the whole shard: what a decoded token costs.
TokenWork DecodeWork(const ShardPlan& plan, const spec::ModelSpec& model);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_TOKEN_WORK_H_
