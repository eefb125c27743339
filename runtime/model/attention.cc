#include "runtime/model/attention.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/kernel_table.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/batch.h"
#include "runtime/model/context.h"
#include "runtime/model/linear.h"
#include "runtime/model/norm.h"
#include "runtime/spec/model_spec.h"

namespace trireme::model {

using spec::Role;

RopeTable::RopeTable(const spec::ModelSpec& model, int32_t rope_index) {
  if (rope_index < 0) {
    return;
  }
  for (int32_t i = 0; i < rope_index; ++i) {
    pairs_before += model.ropes[i].rotated_dim / 2;
  }
  const spec::RopeSpec& rope = model.ropes[rope_index];
  rotated_dim = rope.rotated_dim;
  style = rope.pairing == spec::RopePairing::kInterleaved ? kernels::RopeStyle::kInterleaved
                                                          : kernels::RopeStyle::kHalfSplit;
}

const float* RopeTable::Cosines(const Context& context, int64_t tokens) const {
  return context.activations->cosines + pairs_before * tokens;
}

const float* RopeTable::Sines(const Context& context, int64_t tokens) const {
  return context.activations->sines + pairs_before * tokens;
}

void FillRopeTables(const spec::ModelSpec& model, const Batch& batch,
                    const Activations& activations) {
  float* cosine = activations.cosines;
  float* sine = activations.sines;
  for (const spec::RopeSpec& rope : model.ropes) {
    for (const int32_t position : batch.positions) {
      for (const double frequency : rope.frequencies) {
        const double angle = static_cast<double>(position) * frequency;
        *cosine++ = static_cast<float>(std::cos(angle) * rope.multiplier);
        *sine++ = static_cast<float>(std::sin(angle) * rope.multiplier);
      }
    }
  }
}

Attention::Attention(const spec::ModelSpec& model, const spec::AttentionSpec& attention,
                     const topology::RankPart& part, const weights::LayerWeights& weights,
                     const kernels::KeyValueCache& cache)
    : model_(model),
      attention_(attention),
      part_(part),
      weights_(weights),
      cache_(cache),
      rope_(model, attention.rope_index),
      query_heads_(part.query_heads.size()),
      key_value_heads_(part.key_value_heads.size()) {
  const int64_t shared_by = attention.query_heads / attention.key_value_heads;
  for (int64_t head = part.query_heads.begin; head < part.query_heads.end; ++head) {
    key_value_head_of_.push_back(
        static_cast<int32_t>(head / shared_by - part.key_value_heads.begin));
  }
}

std::byte* Attention::Input(const Context& context) const {
  return QuantizedInput(context, {&weights_.matrix(Role::kQuery), &weights_.matrix(Role::kKey),
                                  &weights_.matrix(Role::kValue)});
}

void Attention::NormHeads(const Context& context, float* x, int64_t rows, const float* gain) const {
  context.table->rms_norm(context.execution, {.x = x,
                                              .gain = gain,
                                              .epsilon = static_cast<float>(model_.norm_epsilon),
                                              .tokens = rows,
                                              .columns = attention_.head_dim,
                                              .y = x});
}

// One norm over the heads of all ranks: each rank brings the sums of squares of its own heads, and
// all add them in the order of the heads. A key/value head that two ranks hold is brought by the
// one that has its first query head; -0 changes no sum.
absl::Status Attention::NormAllHeads(const Context& context, int64_t tokens) const {
  const Activations& a = *context.activations;
  const int64_t width = attention_.head_dim;
  const int64_t all_heads = attention_.query_heads + attention_.key_value_heads;
  const int64_t shared_by = attention_.query_heads / attention_.key_value_heads;
  const absl::Span<float> sums(a.square_sums, static_cast<size_t>(tokens * all_heads));
  std::fill(sums.begin(), sums.end(), -0.0F);
  const auto bring = [&](const float* x, int64_t heads, int64_t first) {
    context.table->square_sums(context.execution, {.x = x,
                                                   .tokens = tokens,
                                                   .columns = heads * width,
                                                   .segment_columns = width,
                                                   .sums = a.square_sums + first,
                                                   .sums_stride = all_heads});
  };
  bring(a.query, query_heads_, part_.query_heads.begin);
  const int64_t first_key = attention_.query_heads + part_.key_value_heads.begin;
  bring(a.key, key_value_heads_, first_key);
  for (int64_t head = part_.key_value_heads.begin; head < part_.key_value_heads.end; ++head) {
    if (!part_.query_heads.contains(head * shared_by)) {
      for (int64_t token = 0; token < tokens; ++token) {
        sums[token * all_heads + attention_.query_heads + head] = -0.0F;
      }
    }
  }
  RETURN_IF_ERROR(context.tensor_group->AllReduceSum(sums));
  const auto norm = [&](float* x, const float* gain, int64_t local_heads, int64_t first,
                        int64_t heads) {
    for (int64_t token = 0; token < tokens; ++token) {
      float sum = 0;
      for (int64_t head = first; head < first + heads; ++head) {
        sum += sums[token * all_heads + head];
      }
      a.roots[token] = std::sqrt(sum / static_cast<float>(heads * width) +
                                 static_cast<float>(model_.norm_epsilon));
    }
    context.table->scale_rows(context.execution, {.x = x,
                                                  .roots = a.roots,
                                                  .gain = gain,
                                                  .tokens = tokens,
                                                  .columns = local_heads * width,
                                                  .y = x});
  };
  norm(a.query, weights_.vector(Role::kQueryNorm), query_heads_, 0, attention_.query_heads);
  norm(a.key, weights_.vector(Role::kKeyNorm), key_value_heads_, attention_.query_heads,
       attention_.key_value_heads);
  return absl::OkStatus();
}

absl::Status Attention::Run(const Context& context, const Batch& batch, const float* x) const {
  const Activations& a = *context.activations;
  const int64_t tokens = batch.tokens();
  const int64_t query_dim = query_heads_ * attention_.head_dim;
  const int64_t key_dim = key_value_heads_ * attention_.head_dim;
  Multiply(context, x, tokens, model_.model_dim,
           {{&weights_.matrix(Role::kQuery), a.query},
            {&weights_.matrix(Role::kKey), a.key},
            {&weights_.matrix(Role::kValue), a.value}});
  AddBias(context, a.query, weights_.vector(Role::kQueryBias), tokens, query_dim);
  AddBias(context, a.key, weights_.vector(Role::kKeyBias), tokens, key_dim);
  AddBias(context, a.value, weights_.vector(Role::kValueBias), tokens, key_dim);
  if (attention_.query_key_norm == spec::QueryKeyNorm::kPerHead) {
    NormHeads(context, a.query, tokens * query_heads_, weights_.vector(Role::kQueryNorm));
    NormHeads(context, a.key, tokens * key_value_heads_, weights_.vector(Role::kKeyNorm));
  } else if (attention_.query_key_norm == spec::QueryKeyNorm::kAllHeads) {
    RETURN_IF_ERROR(NormAllHeads(context, tokens));
  }
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
                            .soft_cap = static_cast<float>(attention_.soft_cap),
                            .sinks = weights_.vector(Role::kSinks),
                            .cache = cache_,
                            .output = a.attended});
  const weights::PackedMatrix& output = weights_.matrix(Role::kAttentionOutput);
  if (attention_.has_attended_norm) {
    RETURN_IF_ERROR(NormShared(context, model_,
                               {.x = a.attended,
                                .gain = weights_.vector(Role::kAttendedNorm),
                                .tokens = tokens,
                                .columns = query_dim,
                                .segment_columns = attention_.head_dim,
                                .first_segment = part_.query_heads.begin,
                                .all_columns = attention_.query_heads * attention_.head_dim,
                                .quantized = QuantizedInput(context, {&output})}));
  } else {
    QuantizeFor(context, {&output}, a.attended, tokens, query_dim);
  }
  Multiply(context, a.attended, tokens, query_dim, {{&output, a.delta}});
  return absl::OkStatus();
}

}  // namespace trireme::model
