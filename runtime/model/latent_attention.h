// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434) in its absorbed form: keys and values
// are one latent row that all heads share, cached as [rotated key | latent]; each query head is
// brought into the latent before, and its output out of it after attention.
#ifndef TRIREME_RUNTIME_MODEL_LATENT_ATTENTION_H_
#define TRIREME_RUNTIME_MODEL_LATENT_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernel_table.h"
#include "runtime/model/attention.h"
#include "runtime/model/batch.h"
#include "runtime/model/context.h"
#include "runtime/spec/model_spec.h"
#include "runtime/weights/shard.h"
#include "topology/partition.h"

namespace trireme::model {

class LatentAttention {
 public:
  // The arguments outlive the attention; its spec has a latent.
  LatentAttention(const spec::ModelSpec& model, const spec::AttentionSpec& attention,
                  const topology::RankPart& part, const weights::LayerWeights& weights,
                  const kernels::KeyValueCache& cache);

  // As Attention::Run and Input.
  void Run(const Context& context, const Batch& batch, const float* x) const;
  std::byte* Input(const Context& context) const;

 private:
  void Project(const Context& context, int64_t tokens, const float* x) const;
  void FillKeys(const Context& context, int64_t tokens) const;
  void FillQueries(const Context& context, int64_t tokens) const;
  const weights::PackedMatrix& FirstQuery() const;

  const spec::ModelSpec& model_;
  const spec::AttentionSpec& attention_;
  const spec::LatentSpec& latent_;
  const weights::LayerWeights& weights_;
  const kernels::KeyValueCache cache_;
  const RopeTable rope_;
  const int64_t query_heads_;
  std::vector<int32_t> key_value_head_of_;  // [query_heads], all 0
};

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_LATENT_ATTENTION_H_
