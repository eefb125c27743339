#include "runtime/model/stage.h"

#include <algorithm>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/kernel_table.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/attention.h"
#include "runtime/model/linear.h"
#include "runtime/model/norm.h"
#include "runtime/model/row_faults.h"
#include "runtime/spec/tensor_source.h"
#include "topology/partition_model.h"

namespace trireme::model {

Stage::Stage(const spec::ModelSpec& model, const weights::Shard& shard,
             const cache::KvCache& kv_cache, const Context& context)
    : model_(model), shard_(shard), context_(context) {
  for (int64_t i = 0; i < shard.part.layers.size(); ++i) {
    layers_.push_back(std::make_unique<Layer>(model, model.layers[shard.part.layers.begin + i],
                                              shard.part, shard.layers[i], kv_cache.layer(i)));
  }
  const int tensor_ranks = context.tensor_group->size();
  for (int rank = 0; rank <= tensor_ranks; ++rank) {
    vocabulary_borders_.push_back(topology::VocabularyBorder(model.vocabulary, rank, tensor_ranks));
  }
  byte_counts_.resize(tensor_ranks);
}

absl::Span<float> Stage::Residual(const Batch& batch) const {
  return {context_.activations->residual, static_cast<size_t>(batch.tokens() * model_.model_dim)};
}

absl::Status Stage::Embed(const Batch& batch) {
  const weights::PackedMatrix& embedding = shard_.ends.matrix(spec::Role::kEmbedding);
  kernels::EmbeddingArgs args{.first_row = shard_.part.vocabulary.begin,
                              .token_ids = batch.token_ids.data(),
                              .tokens = batch.tokens(),
                              .y = context_.activations->residual};
  if (!embedding.slices.empty()) {
    args.table = embedding.slices[0];
  } else {
    args.table.shape = {.rows = 0, .columns = model_.model_dim};
  }
  context_.table->embedding(context_.execution, args);
  // Ranks without the row bring -0, so the sum is the row itself.
  RETURN_IF_ERROR(context_.tensor_group->AllReduceSum(Residual(batch)));
  AddBias(context_, context_.activations->residual, /*bias=*/nullptr, batch.tokens(),
          model_.model_dim, model_.embedding_scale);
  return absl::OkStatus();
}

absl::Span<const int32_t> Stage::Faults(const Batch& batch) const {
  return {context_.activations->faults, static_cast<size_t>(batch.tokens())};
}

void Stage::FindFaultsIn(const float* x, const Batch& batch, int64_t layer) const {
  FindFaults(context_.execution, x, model_.model_dim, static_cast<int32_t>(layer),
             {context_.activations->faults, static_cast<size_t>(batch.tokens())});
}

absl::Status Stage::RunLayers(const Batch& batch) {
  const Activations& a = *context_.activations;
  const topology::RankPart& part = shard_.part;
  const absl::Span<int32_t> faults(a.faults, static_cast<size_t>(batch.tokens()));
  std::fill(faults.begin(), faults.end(), kNoFault);
  if (part.first_stage) {
    FindFaultsIn(a.residual, batch, kFaultInEmbedding);
  } else {
    ReadFaults(context_.execution, a.residual, model_.model_dim,
               static_cast<int32_t>(part.layers.begin - 1), faults);
  }
  FillRopeTables(model_, batch, a);
  int64_t layer = part.layers.begin;
  for (const std::unique_ptr<Layer>& run : layers_) {
    RETURN_IF_ERROR(run->Run(context_, batch, /*has_delta=*/layer != part.layers.begin));
    if (context_.expert_load != nullptr &&
        model_.layers[static_cast<size_t>(layer)].feed_forward.experts.has_value()) {
      context_.expert_load->Add(layer, a.expert_begins);
    }
    // What attention added is in the stream, what the feed-forward adds is not yet.
    FindFaultsIn(a.residual, batch, layer);
    FindFaultsIn(a.delta, batch, layer);
    ++layer;
  }
  context_.table->add(
      context_.execution,
      {.x = a.residual, .delta = a.delta, .count = batch.tokens() * model_.model_dim});
  FindFaultsIn(a.residual, batch, layer - 1);
  if (!part.last_stage) {
    WriteFaults(faults, model_.model_dim, a.residual);
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const float>> Stage::Logits(const Batch& batch) {
  const Activations& a = *context_.activations;
  const int64_t rows = static_cast<int64_t>(batch.logit_rows.size());
  const int64_t dim = model_.model_dim;
  for (int64_t i = 0; i < rows; ++i) {
    std::copy_n(a.residual + batch.logit_rows[i] * dim, dim, a.logit_inputs + i * dim);
  }
  const weights::PackedMatrix& output = shard_.ends.matrix(spec::Role::kOutput);
  Norm(context_, model_,
       {.x = a.logit_inputs,
        .gain = shard_.ends.vector(spec::Role::kOutputNorm),
        .bias = shard_.ends.vector(spec::Role::kOutputNormBias),
        .tokens = rows,
        .columns = dim,
        .y = a.normed,
        .quantized = QuantizedInput(context_, {&output})});
  Multiply(context_, a.normed, rows, dim, {{&output, a.local_logits}});
  if (model_.logit_scale != 1 || model_.logit_soft_cap != 0) {
    context_.table->adjust(context_.execution,
                           {.x = a.local_logits,
                            .scale = static_cast<float>(model_.logit_scale),
                            .soft_cap = static_cast<float>(model_.logit_soft_cap),
                            .tokens = rows,
                            .columns = shard_.part.vocabulary.size()});
  }
  const int tensor_ranks = context_.tensor_group->size();
  if (tensor_ranks == 1) {
    return absl::Span<const float>(a.local_logits, rows * model_.vocabulary);
  }
  const auto bytes_of = [](const float* values, int64_t count) {
    return absl::Span<std::byte>(reinterpret_cast<std::byte*>(const_cast<float*>(values)),
                                 static_cast<size_t>(count) * sizeof(float));
  };
  for (int rank = 0; rank < tensor_ranks; ++rank) {
    byte_counts_[rank] = rows * (vocabulary_borders_[rank + 1] - vocabulary_borders_[rank]) *
                         static_cast<int64_t>(sizeof(float));
  }
  RETURN_IF_ERROR(context_.tensor_group->AllGatherVariable(
      bytes_of(a.local_logits, rows * shard_.part.vocabulary.size()), byte_counts_,
      bytes_of(a.gathered, rows * model_.vocabulary)));
  if (rows == 1) {
    return absl::Span<const float>(a.gathered, model_.vocabulary);
  }
  Interleave(rows);
  return absl::Span<const float>(a.logits, rows * model_.vocabulary);
}

// From [rank][rows, rows of the rank's vocabulary] to [rows, vocabulary].
void Stage::Interleave(int64_t rows) {
  const Activations& a = *context_.activations;
  const float* source = a.gathered;
  for (size_t rank = 0; rank + 1 < vocabulary_borders_.size(); ++rank) {
    const int64_t width = vocabulary_borders_[rank + 1] - vocabulary_borders_[rank];
    for (int64_t row = 0; row < rows; ++row) {
      std::copy_n(source, width, a.logits + row * model_.vocabulary + vocabulary_borders_[rank]);
      source += width;
    }
  }
}

}  // namespace trireme::model
