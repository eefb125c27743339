#include "runtime/model/layer.h"

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/kernel_table.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/batch.h"
#include "runtime/model/context.h"
#include "runtime/model/norm.h"
#include "runtime/spec/model_spec.h"

namespace trireme::model {

using spec::Role;

Layer::Layer(const spec::ModelSpec& model, const spec::LayerSpec& layer,
             const topology::RankPart& part, const weights::LayerWeights& weights,
             const kernels::KeyValueCache& cache)
    : model_(model), layer_(layer), weights_(weights) {
  if (layer.attention.latent.has_value()) {
    latent_attention_.emplace(model, layer.attention, part, weights, cache);
  } else {
    attention_.emplace(model, layer.attention, part, weights, cache);
  }
  if (layer.feed_forward.experts.has_value()) {
    experts_.emplace(model, layer.feed_forward, part, weights);
  } else {
    feed_forward_.emplace(model, layer.feed_forward, part, weights);
  }
}

std::byte* Layer::AttentionInput(const Context& context) const {
  return attention_.has_value() ? attention_->Input(context) : latent_attention_->Input(context);
}

std::byte* Layer::FeedForwardInput(const Context& context) const {
  return experts_.has_value() ? experts_->Input(context) : feed_forward_->Input(context);
}

const float* Layer::Enter(const Context& context, int64_t tokens, bool has_delta, Role gain,
                          Role bias, std::byte* quantized) const {
  const Activations& a = *context.activations;
  if (layer_.has_input_norms) {
    Norm(context, model_,
         {.x = a.residual,
          .delta = has_delta ? a.delta : nullptr,
          .gain = weights_.vector(gain),
          .bias = weights_.vector(bias),
          .tokens = tokens,
          .columns = model_.model_dim,
          .y = a.normed,
          .quantized = quantized});
    return a.normed;
  }
  if (has_delta) {
    context.table->add(context.execution,
                       {.x = a.residual, .delta = a.delta, .count = tokens * model_.model_dim});
  }
  if (quantized != nullptr) {
    context.table->quantize(context.execution, {.x = a.residual,
                                                .tokens = tokens,
                                                .columns = model_.model_dim,
                                                .x_stride = model_.model_dim,
                                                .quantized = quantized});
  }
  return a.residual;
}

absl::Status Layer::RunAttention(const Context& context, const Batch& batch, const float* x) const {
  if (attention_.has_value()) {
    RETURN_IF_ERROR(attention_->Run(context, batch, x));
  } else {
    latent_attention_->Run(context, batch, x);
  }
  return context.tensor_group->AllReduceSum(
      {context.activations->delta, static_cast<size_t>(batch.tokens() * model_.model_dim)});
}

absl::Status Layer::RunFeedForward(const Context& context, int64_t tokens, const float* x,
                                   float* y) const {
  if (experts_.has_value()) {
    return experts_->Run(context, x, tokens, y);
  }
  RETURN_IF_ERROR(feed_forward_->Run(context, x, tokens, y));
  return context.tensor_group->AllReduceSum({y, static_cast<size_t>(tokens * model_.model_dim)});
}

void Layer::Leave(const Context& context, int64_t tokens, float* y, Role bias, Role gain) const {
  AddBias(context, y, weights_.vector(bias), tokens, model_.model_dim, model_.residual_scale);
  if (layer_.has_output_norms) {
    Norm(context, model_,
         {.x = y,
          .gain = weights_.vector(gain),
          .tokens = tokens,
          .columns = model_.model_dim,
          .y = y});
  }
}

absl::Status Layer::Run(const Context& context, const Batch& batch, bool has_delta) const {
  const Activations& a = *context.activations;
  const int64_t tokens = batch.tokens();
  const float* x = Enter(context, tokens, has_delta, Role::kAttentionNorm, Role::kAttentionNormBias,
                         AttentionInput(context));
  RETURN_IF_ERROR(RunAttention(context, batch, x));
  Leave(context, tokens, a.delta, Role::kAttentionOutputBias, Role::kPostAttentionNorm);
  if (layer_.is_parallel) {
    if (std::byte* const quantized = FeedForwardInput(context)) {
      context.table->quantize(context.execution, {.x = x,
                                                  .tokens = tokens,
                                                  .columns = model_.model_dim,
                                                  .x_stride = model_.model_dim,
                                                  .quantized = quantized});
    }
    RETURN_IF_ERROR(RunFeedForward(context, tokens, x, a.parallel_delta));
    Leave(context, tokens, a.parallel_delta, Role::kDownBias, Role::kPostFeedForwardNorm);
    context.table->add(
        context.execution,
        {.x = a.delta, .delta = a.parallel_delta, .count = tokens * model_.model_dim});
    return absl::OkStatus();
  }
  x = Enter(context, tokens, /*has_delta=*/true, Role::kFeedForwardNorm, Role::kFeedForwardNormBias,
            FeedForwardInput(context));
  RETURN_IF_ERROR(RunFeedForward(context, tokens, x, a.delta));
  Leave(context, tokens, a.delta, Role::kDownBias, Role::kPostFeedForwardNorm);
  return absl::OkStatus();
}

}  // namespace trireme::model
