#include "runtime/model/latent_attention.h"

#include <algorithm>

#include "kernels/kernel_table.h"
#include "runtime/model/attention.h"
#include "runtime/model/batch.h"
#include "runtime/model/context.h"
#include "runtime/model/linear.h"
#include "runtime/model/norm.h"
#include "runtime/spec/model_spec.h"

namespace trireme::model {

using spec::Role;

LatentAttention::LatentAttention(const spec::ModelSpec& model, const spec::AttentionSpec& attention,
                                 const topology::RankPart& part,
                                 const weights::LayerWeights& weights,
                                 const kernels::KeyValueCache& cache)
    : model_(model),
      attention_(attention),
      latent_(*attention.latent),
      weights_(weights),
      cache_(cache),
      rope_(model, attention.rope_index),
      query_heads_(part.query_heads.size()),
      key_value_head_of_(static_cast<size_t>(query_heads_), 0) {}

const weights::PackedMatrix& LatentAttention::FirstQuery() const {
  return weights_.matrix(latent_.query_rank > 0 ? Role::kQueryDown : Role::kQuery);
}

std::byte* LatentAttention::Input(const Context& context) const {
  return QuantizedInput(context, {&FirstQuery(), &weights_.matrix(Role::kLatent)});
}

// Queries [tokens, query_heads, unrotated | rotated] and the latent [tokens, latent | rotated key].
void LatentAttention::Project(const Context& context, int64_t tokens, const float* x) const {
  const Activations& a = *context.activations;
  const weights::PackedMatrix& latent = weights_.matrix(Role::kLatent);
  if (latent_.query_rank == 0) {
    Multiply(context, x, tokens, model_.model_dim,
             {{&FirstQuery(), a.latent_query}, {&latent, a.latent}});
    return;
  }
  Multiply(context, x, tokens, model_.model_dim,
           {{&FirstQuery(), a.low_rank_query}, {&latent, a.latent}});
  const weights::PackedMatrix& up = weights_.matrix(Role::kQueryUp);
  Norm(context, model_,
       {.x = a.low_rank_query,
        .gain = weights_.vector(Role::kQueryDownNorm),
        .tokens = tokens,
        .columns = latent_.query_rank,
        .y = a.low_rank_query,
        .quantized = QuantizedInput(context, {&up})});
  Multiply(context, a.low_rank_query, tokens, latent_.query_rank, {{&up, a.latent_query}});
}

void LatentAttention::FillKeys(const Context& context, int64_t tokens) const {
  const Activations& a = *context.activations;
  const int64_t width = attention_.head_dim;
  for (int64_t token = 0; token < tokens; ++token) {
    std::copy_n(a.latent + token * width, latent_.latent_dim, a.value + token * latent_.latent_dim);
  }
  Norm(context, model_,
       {.x = a.value,
        .gain = weights_.vector(Role::kLatentNorm),
        .tokens = tokens,
        .columns = latent_.latent_dim,
        .y = a.value});
  for (int64_t token = 0; token < tokens; ++token) {
    float* const key = a.key + token * width;
    std::copy_n(a.latent + token * width + latent_.latent_dim, latent_.rotated_dim, key);
    std::copy_n(a.value + token * latent_.latent_dim, latent_.latent_dim,
                key + latent_.rotated_dim);
  }
  std::copy_n(a.key, tokens * width, a.value);
}

void LatentAttention::FillQueries(const Context& context, int64_t tokens) const {
  const Activations& a = *context.activations;
  const int64_t head_dim = latent_.unrotated_dim + latent_.rotated_dim;
  const int64_t stride = query_heads_ * head_dim;
  const int64_t cached_stride = query_heads_ * attention_.head_dim;
  for (int64_t head = 0; head < query_heads_; ++head) {
    const weights::PackedMatrix& up = weights_.matrix(Role::kKeyUp, head);
    const float* const query = a.latent_query + head * head_dim;
    float* const cached = a.query + head * attention_.head_dim;
    QuantizeFor(context, {&up}, query, tokens, latent_.unrotated_dim, stride);
    Multiply(context, query, tokens, latent_.unrotated_dim,
             {{&up, cached + latent_.rotated_dim, cached_stride}}, stride);
    for (int64_t token = 0; token < tokens; ++token) {
      std::copy_n(query + token * stride + latent_.unrotated_dim, latent_.rotated_dim,
                  cached + token * cached_stride);
    }
  }
}

void LatentAttention::Run(const Context& context, const Batch& batch, const float* x) const {
  const Activations& a = *context.activations;
  const int64_t tokens = batch.tokens();
  Project(context, tokens, x);
  FillKeys(context, tokens);
  FillQueries(context, tokens);
  context.table->rope_and_store(context.execution, {.style = rope_.style,
                                                    .rotated_dim = rope_.rotated_dim,
                                                    .cosines = rope_.Cosines(context, tokens),
                                                    .sines = rope_.Sines(context, tokens),
                                                    .tokens = tokens,
                                                    .query = a.query,
                                                    .query_heads = query_heads_,
                                                    .key = a.key,
                                                    .value = a.value,
                                                    .cache = cache_,
                                                    .slots = batch.slots.data()});
  context.table->attention(context.execution,
                           {.sequences = batch.sequences.data(),
                            .sequence_count = static_cast<int64_t>(batch.sequences.size()),
                            .query = a.query,
                            .query_heads = query_heads_,
                            .key_value_head_of = key_value_head_of_.data(),
                            .scale = static_cast<float>(attention_.scale),
                            .window = attention_.window,
                            .cache = cache_,
                            .output = a.attended});
  const int64_t output_dim = query_heads_ * latent_.value_dim;
  const int64_t cached_stride = query_heads_ * attention_.head_dim;
  for (int64_t head = 0; head < query_heads_; ++head) {
    const weights::PackedMatrix& up = weights_.matrix(Role::kValueUp, head);
    const float* const attended = a.attended + head * attention_.head_dim + latent_.rotated_dim;
    QuantizeFor(context, {&up}, attended, tokens, latent_.latent_dim, cached_stride);
    Multiply(context, attended, tokens, latent_.latent_dim,
             {{&up, a.latent_query + head * latent_.value_dim, output_dim}}, cached_stride);
  }
  const weights::PackedMatrix& output = weights_.matrix(Role::kAttentionOutput);
  QuantizeFor(context, {&output}, a.latent_query, tokens, output_dim);
  Multiply(context, a.latent_query, tokens, output_dim, {{&output, a.delta}});
}

}  // namespace trireme::model
