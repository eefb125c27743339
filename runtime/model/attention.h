// Grouped-query attention with rotary positions over the paged KV cache: everything between the
// norm and the residual.
#ifndef TRIREME_RUNTIME_MODEL_ATTENTION_H_
#define TRIREME_RUNTIME_MODEL_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "kernels/kernel_table.h"
#include "runtime/model/batch.h"
#include "runtime/model/context.h"
#include "runtime/spec/model_spec.h"
#include "runtime/weights/shard.h"
#include "topology/partition.h"

namespace trireme::model {

// Where a layer's rope stands in the tables of the step; style kNone for a layer without positions.
struct RopeTable {
  RopeTable(const spec::ModelSpec& model, int32_t rope_index);

  const float* Cosines(const Context& context, int64_t tokens) const;
  const float* Sines(const Context& context, int64_t tokens) const;

  kernels::RopeStyle style = kernels::RopeStyle::kNone;
  int64_t rotated_dim = 0;
  int64_t pairs_before = 0;  // pairs of earlier ropes
};

class Attention {
 public:
  // The arguments outlive the attention.
  Attention(const spec::ModelSpec& model, const spec::AttentionSpec& attention,
            const topology::RankPart& part, const weights::LayerWeights& weights,
            const kernels::KeyValueCache& cache);

  // From x [tokens, model_dim] (quantised too where Input says so) to this rank's partial sums in
  // `delta`; the caller adds them over the tensor group. Errors: those of the communicator.
  absl::Status Run(const Context& context, const Batch& batch, const float* x) const;

  // Where the quantised x is wanted, or null.
  std::byte* Input(const Context& context) const;

 private:
  void NormHeads(const Context& context, float* x, int64_t rows, const float* gain) const;
  absl::Status NormAllHeads(const Context& context, int64_t tokens) const;

  const spec::ModelSpec& model_;
  const spec::AttentionSpec& attention_;
  const topology::RankPart& part_;
  const weights::LayerWeights& weights_;
  const kernels::KeyValueCache cache_;
  const RopeTable rope_;
  const int64_t query_heads_;
  const int64_t key_value_heads_;
  std::vector<int32_t> key_value_head_of_;  // [query_heads]
};

// cos and sin of every rope at every position of the batch, into the activations' tables.
void FillRopeTables(const spec::ModelSpec& model, const Batch& batch,
                    const Activations& activations);

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_ATTENTION_H_
