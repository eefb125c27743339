#include "runtime/model/activations.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "kernels/execution.h"
#include "kernels/kernel_table.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/buffer.h"
#include "runtime/device/workspace.h"
#include "runtime/spec/model_spec.h"
#include "topology/partition_model.h"

namespace trireme::model {

namespace {

// What the largest layer of a model needs on one rank.
struct Widths {
  int64_t query = 0;
  int64_t key_value = 0;
  int64_t hidden = 0;
  int64_t latent_query = 0;
  int64_t low_rank_query = 0;
  int64_t latent = 0;
  std::vector<int64_t> inputs;  // columns of every product
  bool is_parallel = false;
  int64_t square_sums = 0;    // of a token, for norms over rows that the ranks share
  spec::ExpertsSpec experts;  // each count the largest one; count 0: no experts
};

int64_t HiddenColumns(int64_t hidden_dim, const topology::RankPart& part) {
  return topology::PartOfHidden(hidden_dim, part.tensor_rank, part.tensor_ranks).columns.size();
}

int64_t SquareSumsOf(const spec::LayerSpec& layer) {
  const spec::AttentionSpec& attention = layer.attention;
  const spec::FeedForwardSpec& feed_forward = layer.feed_forward;
  int64_t sums = 0;
  if (attention.query_key_norm == spec::QueryKeyNorm::kAllHeads) {
    sums = attention.query_heads + attention.key_value_heads;
  }
  if (attention.has_attended_norm) {
    sums = std::max(sums, attention.query_heads);
  }
  if (feed_forward.has_hidden_norm) {
    sums = std::max(sums,
                    (feed_forward.hidden_dim + topology::kHiddenUnit - 1) / topology::kHiddenUnit);
  }
  return sums;
}

void AddLatent(const spec::LatentSpec& latent, int64_t heads, Widths* widths) {
  widths->latent_query =
      std::max(widths->latent_query,
               heads * std::max(latent.unrotated_dim + latent.rotated_dim, latent.value_dim));
  widths->low_rank_query = std::max(widths->low_rank_query, latent.query_rank);
  widths->latent = std::max(widths->latent, latent.latent_dim + latent.rotated_dim);
  widths->inputs.insert(widths->inputs.end(), {latent.query_rank, latent.unrotated_dim,
                                               latent.latent_dim, heads * latent.value_dim});
}

void AddExperts(const spec::ExpertsSpec& layer, const topology::RankPart& part, Widths* widths) {
  spec::ExpertsSpec& most = widths->experts;
  most.count = std::max(most.count, layer.count);
  most.used = std::max(most.used, layer.used);
  most.groups = std::max(most.groups, layer.groups);
  most.shared_dim = std::max(most.shared_dim, layer.shared_dim);
  for (const int64_t hidden_dim : {layer.hidden_dim, layer.shared_dim}) {
    widths->hidden = std::max(widths->hidden, HiddenColumns(hidden_dim, part));
    widths->inputs.push_back(HiddenColumns(hidden_dim, part));
  }
}

Widths WidthsOf(const spec::ModelSpec& model, const topology::RankPart& part) {
  Widths widths;
  widths.inputs.push_back(model.model_dim);
  for (const spec::LayerSpec& layer : model.layers) {
    const spec::AttentionSpec& attention = layer.attention;
    const int64_t heads = part.query_heads.size();
    widths.query = std::max(widths.query, heads * attention.head_dim);
    widths.key_value = std::max(widths.key_value, part.key_value_heads.size() * attention.head_dim);
    widths.hidden = std::max(widths.hidden, HiddenColumns(layer.feed_forward.hidden_dim, part));
    widths.inputs.push_back(heads * attention.head_dim);
    widths.inputs.push_back(HiddenColumns(layer.feed_forward.hidden_dim, part));
    widths.is_parallel = widths.is_parallel || layer.is_parallel;
    widths.square_sums = std::max(widths.square_sums, SquareSumsOf(layer));
    if (attention.latent.has_value()) {
      AddLatent(*attention.latent, heads, &widths);
    }
    if (layer.feed_forward.experts.has_value()) {
      AddExperts(*layer.feed_forward.experts, part, &widths);
    }
  }
  return widths;
}

}  // namespace

void Activations::CutOptional(const spec::ModelSpec& model, const topology::RankPart& part,
                              int64_t tokens, device::WorkspaceCutter* cutter) {
  const Widths widths = WidthsOf(model, part);
  parallel_delta = cutter->Take<float>(widths.is_parallel ? tokens * model.model_dim : 0);
  square_sums = cutter->Take<float>(tokens * widths.square_sums);
  roots = cutter->Take<float>(widths.square_sums > 0 ? tokens : 0);
  latent_query = cutter->Take<float>(tokens * widths.latent_query);
  low_rank_query = cutter->Take<float>(tokens * widths.low_rank_query);
  latent = cutter->Take<float>(tokens * widths.latent);
  const spec::ExpertsSpec& experts = widths.experts;
  const int64_t terms = experts.used + (experts.shared_dim > 0 ? 1 : 0);
  const bool has_experts = experts.count > 0;
  router = cutter->Take<float>(tokens * experts.count);
  route_scratch = cutter->Take<float>(has_experts ? experts.count + experts.groups : 0);
  chosen = cutter->Take<int32_t>(tokens * experts.used);
  expert_weights = cutter->Take<float>(tokens * terms);
  row_of_term = cutter->Take<int32_t>(tokens * terms);
  expert_begins = cutter->Take<int32_t>(has_experts ? experts.count + 1 : 0);
  sorted_tokens = cutter->Take<int32_t>(tokens * experts.used);
  gathered_rows = cutter->Take<float>(has_experts ? tokens * model.model_dim : 0);
  expert_rows = cutter->Take<float>(tokens * terms * model.model_dim);
}

void Activations::Cut(const spec::ModelSpec& model, const topology::RankPart& part,
                      const kernels::KernelTable& table, const ActivationLimits& limits,
                      device::WorkspaceCutter* cutter) {
  const Widths widths = WidthsOf(model, part);
  const int64_t tokens = limits.tokens;
  int64_t rotated_pairs = 0;
  for (const spec::RopeSpec& rope : model.ropes) {
    rotated_pairs += rope.rotated_dim / 2;
  }

  residual = cutter->Take<float>(tokens * model.model_dim);
  delta = cutter->Take<float>(tokens * model.model_dim);
  normed = cutter->Take<float>(tokens * model.model_dim);
  faults = cutter->Take<int32_t>(tokens);
  int64_t quantized_bytes = 0;
  int64_t rounded_bytes = 0;
  for (const int64_t columns : widths.inputs) {
    rounded_bytes = std::max(rounded_bytes, table.rounded_bytes(tokens, columns));
    // Widths that 32 does not divide are multiplied in float32 and need no room here.
    if (columns % kernels::kGroupValues == 0) {
      quantized_bytes = std::max(quantized_bytes, table.quantized_bytes(tokens, columns));
    }
  }
  quantized = cutter->Take<std::byte>(quantized_bytes);
  rounded = cutter->Take<std::byte>(rounded_bytes);
  query = cutter->Take<float>(tokens * widths.query);
  key = cutter->Take<float>(tokens * widths.key_value);
  value = cutter->Take<float>(tokens * widths.key_value);
  attended = cutter->Take<float>(tokens * widths.query);
  gate = cutter->Take<float>(tokens * widths.hidden);
  up = cutter->Take<float>(tokens * widths.hidden);
  cosines = cutter->Take<float>(tokens * rotated_pairs);
  sines = cutter->Take<float>(tokens * rotated_pairs);
  CutOptional(model, part, tokens, cutter);
  if (part.last_stage) {
    logit_inputs = cutter->Take<float>(limits.logit_rows * model.model_dim);
    local_logits = cutter->Take<float>(limits.logit_rows * part.vocabulary.size());
    gathered = cutter->Take<float>(limits.logit_rows * model.vocabulary);
    logits = cutter->Take<float>(limits.logit_rows * model.vocabulary);
  }
  worker_scratch = cutter->Take<std::byte>(limits.threads * kernels::kWorkerScratchBytes);
  shared_scratch_bytes = table.shared_scratch_bytes(
      tokens, part.query_heads.size(), model.layers[0].attention.head_dim, limits.context);
  shared_scratch = cutter->Take<std::byte>(shared_scratch_bytes);
}

int64_t Activations::Bytes(const spec::ModelSpec& model, const topology::RankPart& part,
                           const kernels::KernelTable& table, const ActivationLimits& limits) {
  Activations counted;
  device::WorkspaceCutter counter(nullptr);
  counted.Cut(model, part, table, limits, &counter);
  return counter.used_bytes();
}

absl::StatusOr<Activations> Activations::Create(const spec::ModelSpec& model,
                                                const topology::RankPart& part,
                                                const kernels::KernelTable& table,
                                                const ActivationLimits& limits) {
  Activations activations;
  ASSIGN_OR_RETURN(
      activations.buffer_,
      device::DeviceBuffer::Create(Bytes(model, part, table, limits),
                                   absl::StrFormat("the workspace of rank %d", part.rank)));
  device::WorkspaceCutter cutter(activations.buffer_.data());
  activations.Cut(model, part, table, limits, &cutter);
  return activations;
}

}  // namespace trireme::model
