// The feed-forward: down * (activation(gate * x) . (up * x)), or down * activation(up * x) without
// gate. Serves the shared expert of a mixture too.
#ifndef TRIREME_RUNTIME_MODEL_FEED_FORWARD_H_
#define TRIREME_RUNTIME_MODEL_FEED_FORWARD_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "runtime/model/context.h"
#include "runtime/spec/model_spec.h"
#include "runtime/weights/shard.h"
#include "topology/partition.h"

namespace trireme::model {

// The matrices and biases of one gated or plain feed-forward, as one rank holds them.
struct HiddenWeights {
  const weights::PackedMatrix* gate = nullptr;  // null: no gate
  const weights::PackedMatrix* up = nullptr;
  const weights::PackedMatrix* down = nullptr;
  const float* gate_bias = nullptr;
  const float* up_bias = nullptr;
};

// Activations of this rank's hidden columns from x into the activations' `gate` [tokens, columns],
// quantised too where `quantized` is not null.
void RunActivation(const Context& context, const spec::FeedForwardSpec& feed_forward,
                   const HiddenWeights& weights, int64_t model_dim, int64_t columns, const float* x,
                   int64_t tokens, std::byte* quantized);

// From x [tokens, model_dim] (quantised too where a matrix wants it) to this rank's partial sums in
// y [tokens, model_dim]. `columns` of the hidden layer are this rank's; may be 0.
void RunHidden(const Context& context, const spec::FeedForwardSpec& feed_forward,
               const HiddenWeights& weights, int64_t model_dim, int64_t columns, const float* x,
               int64_t tokens, float* y);

class FeedForward {
 public:
  // The arguments outlive it; the spec has no experts.
  FeedForward(const spec::ModelSpec& model, const spec::FeedForwardSpec& feed_forward,
              const topology::RankPart& part, const weights::LayerWeights& weights);

  // The caller adds y over the tensor group, then the bias of `down`. Errors: those of the
  // communicator.
  absl::Status Run(const Context& context, const float* x, int64_t tokens, float* y) const;

  // Where the quantised x is wanted, or null.
  std::byte* Input(const Context& context) const;

 private:
  const spec::ModelSpec& model_;
  const spec::FeedForwardSpec& feed_forward_;
  const int64_t model_dim_;
  const topology::Range hidden_;  // this rank's columns
  HiddenWeights weights_;
  const float* hidden_norm_;  // null: none
};

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_FEED_FORWARD_H_
