// One transformer layer: norm, attention, all-reduce; norm, feed-forward, all-reduce; or norms
// after both, or both side by side. The two places where the forward pass branches on a model's
// structure are here: latent attention, and experts.
#ifndef TRIREME_RUNTIME_MODEL_LAYER_H_
#define TRIREME_RUNTIME_MODEL_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "runtime/model/attention.h"
#include "runtime/model/batch.h"
#include "runtime/model/context.h"
#include "runtime/model/experts.h"
#include "runtime/model/feed_forward.h"
#include "runtime/model/latent_attention.h"
#include "runtime/spec/model_spec.h"
#include "runtime/weights/shard.h"

namespace trireme::model {

class Layer {
 public:
  // The arguments outlive the layer.
  Layer(const spec::ModelSpec& model, const spec::LayerSpec& layer, const topology::RankPart& part,
        const weights::LayerWeights& weights, const kernels::KeyValueCache& cache);

  // `residual` is the stream; a sublayer leaves what it adds in `delta`, and the next norm adds it
  // on its way (one pass over the row fewer). `has_delta` tells whether one is waiting; after Run
  // one always is. Errors: those of the communicator.
  absl::Status Run(const Context& context, const Batch& batch, bool has_delta) const;

 private:
  std::byte* AttentionInput(const Context& context) const;
  std::byte* FeedForwardInput(const Context& context) const;

  // What a sublayer reads: the normed stream, or the stream itself; a waiting delta is added first.
  const float* Enter(const Context& context, int64_t tokens, bool has_delta, spec::Role gain,
                     spec::Role bias, std::byte* quantized) const;

  // Into `delta`, added up over the tensor group.
  absl::Status RunAttention(const Context& context, const Batch& batch, const float* x) const;
  // Into y, likewise.
  absl::Status RunFeedForward(const Context& context, int64_t tokens, const float* x,
                              float* y) const;

  // Bias, norm and scale of what a sublayer adds, in place.
  void Leave(const Context& context, int64_t tokens, float* y, spec::Role bias,
             spec::Role gain) const;

  const spec::ModelSpec& model_;
  const spec::LayerSpec& layer_;
  const weights::LayerWeights& weights_;
  std::optional<Attention> attention_;
  std::optional<LatentAttention> latent_attention_;
  std::optional<FeedForward> feed_forward_;
  std::optional<Experts> experts_;
};

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_LAYER_H_
