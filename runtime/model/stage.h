// The layers of one rank, and the two ends of the model where the rank has them: the embedding and
// the output matrix.
#ifndef TRIREME_RUNTIME_MODEL_STAGE_H_
#define TRIREME_RUNTIME_MODEL_STAGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/model/batch.h"
#include "runtime/model/context.h"
#include "runtime/model/layer.h"
#include "runtime/spec/model_spec.h"
#include "runtime/weights/shard.h"

namespace trireme::model {

// Thread rule: one thread. All ranks of the tensor group run the same batches in the same order.
class Stage {
 public:
  // The arguments outlive the stage.
  Stage(const spec::ModelSpec& model, const weights::Shard& shard, const cache::KvCache& kv_cache,
        const Context& context);

  // First stage: the residual stream of the batch's tokens.
  absl::Status Embed(const Batch& batch);

  // The residual stream, [tokens, model_dim]: what another stage sends in here or takes out after
  // RunLayers.
  absl::Span<float> Residual(const Batch& batch) const;

  absl::Status RunLayers(const Batch& batch);

  // After RunLayers, of each row: where it lost its numbers, in this stage or one before
  // (row_faults.h); valid until the next batch.
  absl::Span<const int32_t> Faults(const Batch& batch) const;

  // Last stage, after RunLayers: [logit_rows, vocabulary] on every rank of the tensor group; valid
  // until the next batch.
  absl::StatusOr<absl::Span<const float>> Logits(const Batch& batch);

 private:
  void Interleave(int64_t rows);
  void FindFaultsIn(const float* x, const Batch& batch, int64_t layer) const;

  const spec::ModelSpec& model_;
  const weights::Shard& shard_;
  const Context& context_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<int64_t>
      vocabulary_borders_;            // [tensor ranks + 1]: first vocabulary row of each rank
  std::vector<int64_t> byte_counts_;  // [tensor ranks], of the gather in flight
};

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_STAGE_H_
