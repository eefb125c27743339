#include "runtime/model/feed_forward.h"

#include "absl/status/status.h"
#include "kernels/kernel_table.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/context.h"
#include "runtime/model/linear.h"
#include "runtime/model/norm.h"
#include "runtime/spec/model_spec.h"
#include "topology/partition_model.h"

namespace trireme::model {

using spec::Role;

void RunActivation(const Context& context, const spec::FeedForwardSpec& feed_forward,
                   const HiddenWeights& weights, int64_t model_dim, int64_t columns, const float* x,
                   int64_t tokens, std::byte* quantized) {
  const Activations& a = *context.activations;
  if (columns == 0) {
    return;
  }
  if (weights.gate == nullptr) {
    Multiply(context, x, tokens, model_dim, {{weights.up, a.gate}});
    AddBias(context, a.gate, weights.up_bias, tokens, columns);
  } else {
    Multiply(context, x, tokens, model_dim, {{weights.gate, a.gate}, {weights.up, a.up}});
    AddBias(context, a.gate, weights.gate_bias, tokens, columns);
    AddBias(context, a.up, weights.up_bias, tokens, columns);
  }
  context.table->gated_activation(context.execution,
                                  {.activation = feed_forward.activation,
                                   .swish_limit = feed_forward.swish_limit,
                                   .swish_alpha = feed_forward.swish_alpha,
                                   .gate = a.gate,
                                   .up = weights.gate == nullptr ? nullptr : a.up,
                                   .tokens = tokens,
                                   .columns = columns,
                                   .y = a.gate,
                                   .quantized = quantized});
}

void RunHidden(const Context& context, const spec::FeedForwardSpec& feed_forward,
               const HiddenWeights& weights, int64_t model_dim, int64_t columns, const float* x,
               int64_t tokens, float* y) {
  RunActivation(context, feed_forward, weights, model_dim, columns, x, tokens,
                QuantizedInput(context, {weights.down}));
  Multiply(context, context.activations->gate, tokens, columns, {{weights.down, y}});
}

FeedForward::FeedForward(const spec::ModelSpec& model, const spec::FeedForwardSpec& feed_forward,
                         const topology::RankPart& part, const weights::LayerWeights& weights)
    : model_(model),
      feed_forward_(feed_forward),
      model_dim_(model.model_dim),
      hidden_(topology::PartOfHidden(feed_forward.hidden_dim, part.tensor_rank, part.tensor_ranks)
                  .columns),
      weights_{.gate = feed_forward.is_gated ? &weights.matrix(Role::kGate) : nullptr,
               .up = &weights.matrix(Role::kUp),
               .down = &weights.matrix(Role::kDown),
               .gate_bias = weights.vector(Role::kGateBias),
               .up_bias = weights.vector(Role::kUpBias)},
      hidden_norm_(weights.vector(Role::kHiddenNorm)) {}

std::byte* FeedForward::Input(const Context& context) const {
  return weights_.gate == nullptr ? QuantizedInput(context, {weights_.up})
                                  : QuantizedInput(context, {weights_.gate, weights_.up});
}

absl::Status FeedForward::Run(const Context& context, const float* x, int64_t tokens,
                              float* y) const {
  if (!feed_forward_.has_hidden_norm) {
    RunHidden(context, feed_forward_, weights_, model_dim_, hidden_.size(), x, tokens, y);
    return absl::OkStatus();
  }
  float* const hidden = context.activations->gate;
  RunActivation(context, feed_forward_, weights_, model_dim_, hidden_.size(), x, tokens,
                /*quantized=*/nullptr);
  RETURN_IF_ERROR(NormShared(context, model_,
                             {.x = hidden,
                              .gain = hidden_norm_,
                              .tokens = tokens,
                              .columns = hidden_.size(),
                              .segment_columns = topology::kHiddenUnit,
                              .first_segment = hidden_.begin / topology::kHiddenUnit,
                              .all_columns = feed_forward_.hidden_dim,
                              .quantized = QuantizedInput(context, {weights_.down})}));
  Multiply(context, hidden, tokens, hidden_.size(), {{weights_.down, y}});
  return absl::OkStatus();
}

}  // namespace trireme::model
