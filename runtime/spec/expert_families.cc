#include "runtime/spec/expert_families.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/spec/dense_families.h"
#include "runtime/spec/read_rope.h"
#include "runtime/spec/rope_scaling.h"
#include "runtime/spec/tensor_roles.h"

namespace trireme::spec {
namespace {

absl::StatusOr<ExpertsSpec> ReadExperts(const FamilySource& source, const char* width_key) {
  const Keys& keys = source.keys;
  ExpertsSpec experts;
  ASSIGN_OR_RETURN(experts.count, keys.Extent("expert_count", kExpertsMax));
  ASSIGN_OR_RETURN(experts.used, keys.Extent("expert_used_count", kExpertsMax));
  if (experts.used > experts.count) {
    return keys.Error("expert_used_count", absl::StrFormat("is %d; the model has %d experts",
                                                           experts.used, experts.count));
  }
  ASSIGN_OR_RETURN(experts.hidden_dim, keys.Extent(width_key, kWidthMax));
  return experts;
}

// Layers for which `is_sparse` holds get the experts in place of their feed-forward.
void PutExperts(const ExpertsSpec& experts, const std::function<bool(int64_t)>& is_sparse,
                ModelSpec* model) {
  ForEachLayer(model, [&](int64_t i, LayerSpec& layer) {
    if (is_sparse(i)) {
      FeedForwardSpec& feed_forward = layer.feed_forward;
      feed_forward = {.activation = feed_forward.activation,
                      .swish_limit = feed_forward.swish_limit,
                      .swish_alpha = feed_forward.swish_alpha,
                      .experts = experts};
      feed_forward.hidden_dim = 0;
    }
  });
}

TensorSource Stacked(const char* name, std::vector<int64_t> extents, int64_t first_row,
                     int64_t index_rows) {
  TensorSource source;
  source.name = name;
  source.extents = std::move(extents);
  source.first_row = first_row;
  source.index_rows = index_rows;
  return source;
}

// Newer exports hold all experts of a layer in two tensors, gate rows before up rows; very old GGUF
// files hold one tensor an expert. Takes whichever is stored in `layer`.
void FindExpertTensors(const FamilySource& source, int64_t layer, ModelSpec* model) {
  const ExpertsSpec& experts = *model->layers[layer].feed_forward.experts;
  const auto is_stored = [&](const std::string& name) {
    TensorSource candidate;
    candidate.name = name;
    return source.keys.metadata().TensorExtents(TensorName(candidate, layer, 0)).has_value();
  };
  if (is_stored(model->source(Role::kExpertGate).name)) {
    return;
  }
  const int64_t width = experts.hidden_dim;
  const char* fused = source.is_gguf() ? "blk.*.ffn_gate_up_exps.weight"
                                       : "model.layers.*.mlp.experts.gate_up_proj";
  if (is_stored(fused)) {
    const std::vector<int64_t> extents = {experts.count, 2 * width, model->model_dim};
    model->source(Role::kExpertGate) = Stacked(fused, extents, 0, 2 * width);
    model->source(Role::kExpertUp) = Stacked(fused, extents, width, 2 * width);
    if (!source.is_gguf()) {
      model->source(Role::kExpertDown).name = "model.layers.*.mlp.experts.down_proj";
    }
    return;
  }
  if (source.is_gguf() && is_stored("blk.*.ffn_gate.#.weight")) {
    model->source(Role::kExpertGate).name = "blk.*.ffn_gate.#.weight";
    model->source(Role::kExpertUp).name = "blk.*.ffn_up.#.weight";
    model->source(Role::kExpertDown).name = "blk.*.ffn_down.#.weight";
  }
}

absl::StatusOr<std::function<bool(int64_t)>> QwenSparseLayers(const FamilySource& source) {
  if (source.is_gguf()) {
    return [](int64_t) { return true; };
  }
  const Keys& keys = source.keys;
  std::vector<int64_t> dense;
  if (keys.Has("expert_dense_layers")) {
    ASSIGN_OR_RETURN(dense, keys.metadata().Integers(keys.Name("expert_dense_layers")));
  }
  ASSIGN_OR_RETURN(const int64_t step, keys.ExtentOr("expert_sparse_step", kLayersMax, 1));
  return [dense, step](int64_t i) {
    return (i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end();
  };
}

int64_t FirstSparseLayer(const ModelSpec& model) {
  for (size_t i = 0; i < model.layers.size(); ++i) {
    if (model.layers[i].feed_forward.experts.has_value()) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

void FindExpertTensors(const FamilySource& source, ModelSpec* model) {
  if (const int64_t layer = FirstSparseLayer(*model); layer >= 0) {
    FindExpertTensors(source, layer, model);
  }
}

// Groups, scale and the layers before the experts begin, as DeepSeek-V3 introduced them.
absl::Status AddGroupedExperts(const FamilySource& source, ExpertsSpec experts, ModelSpec* model) {
  const Keys& keys = source.keys;
  ASSIGN_OR_RETURN(experts.groups, keys.ExtentOr("expert_group_count", kExpertsMax, 1));
  ASSIGN_OR_RETURN(experts.used_groups,
                   keys.ExtentOr("expert_group_used_count", kExpertsMax, experts.groups));
  if (experts.count % experts.groups != 0 || experts.used_groups > experts.groups ||
      experts.used > experts.count / experts.groups * experts.used_groups) {
    return keys.Error(
        "expert_group_count",
        absl::StrFormat("is %d, of which %d serve: the groups must divide the %d experts and the "
                        "serving ones hold the %d that a token uses",
                        experts.groups, experts.used_groups, experts.count, experts.used));
  }
  if (keys.Has("expert_weights_scale")) {
    ASSIGN_OR_RETURN(const double scale, keys.metadata().Float(keys.Name("expert_weights_scale")));
    experts.scale = scale == 0 ? 1 : scale;  // 0: none
  }
  ASSIGN_OR_RETURN(const int64_t shared, keys.Count("expert_shared_count", kExpertsMax));
  experts.shared_dim = shared * experts.hidden_dim;
  ASSIGN_OR_RETURN(const int64_t dense, keys.Count("leading_dense_block_count", kLayersMax));
  ASSIGN_OR_RETURN(const int64_t step, keys.ExtentOr("expert_layer_step", kLayersMax, 1));
  PutExperts(
      experts, [dense, step](int64_t i) { return i >= dense && i % step == 0; }, model);
  FindExpertTensors(source, model);
  return absl::OkStatus();
}

absl::Status AddLatentAttention(const FamilySource& source, ModelSpec* model) {
  const Keys& keys = source.keys;
  const auto layers = static_cast<int64_t>(model->layers.size());
  AttentionSpec attention;
  LatentSpec latent;
  ASSIGN_OR_RETURN(attention.query_heads, keys.Uniform("attention.head_count", layers, kWidthMax));
  ASSIGN_OR_RETURN(latent.query_rank, keys.Count("attention.q_lora_rank", kWidthMax));
  ASSIGN_OR_RETURN(latent.latent_dim, keys.Extent("attention.kv_lora_rank", kWidthMax));
  ASSIGN_OR_RETURN(latent.rotated_dim, keys.Extent("rope.dimension_count", kWidthMax));
  const bool is_unsplit = !source.is_gguf() || !keys.Has("attention.key_length_mla");
  if (source.is_gguf()) {
    // Files without the two keys are older and say here what the others say there.
    ASSIGN_OR_RETURN(
        const int64_t key_dim,
        keys.Extent(is_unsplit ? "attention.key_length" : "attention.key_length_mla", kWidthMax));
    latent.unrotated_dim = key_dim - latent.rotated_dim;
    if (latent.unrotated_dim < 1) {
      return keys.Error(
          "attention.key_length",
          absl::StrFormat("is %d, not above the rotated part, %d", key_dim, latent.rotated_dim));
    }
  } else {
    ASSIGN_OR_RETURN(latent.unrotated_dim, keys.Extent("attention.unrotated_length", kWidthMax));
  }
  ASSIGN_OR_RETURN(latent.value_dim,
                   keys.Extent(source.is_gguf() && is_unsplit ? "attention.value_length"
                                                              : "attention.value_length_mla",
                               kWidthMax));
  attention.key_value_heads = 1;
  attention.head_dim = latent.latent_dim + latent.rotated_dim;
  attention.scale = 1 / std::sqrt(static_cast<double>(latent.unrotated_dim + latent.rotated_dim));
  attention.latent = latent;
  ForEachLayer(model, [&](int64_t, LayerSpec& layer) { layer.attention = attention; });
  if (is_unsplit) {
    const char* name =
        source.is_gguf() ? "blk.*.attn_kv_b.weight" : "model.layers.*.self_attn.kv_b_proj.weight";
    const int64_t head_rows = latent.unrotated_dim + latent.value_dim;
    const std::vector<int64_t> extents = {attention.query_heads * head_rows, latent.latent_dim};
    model->source(Role::kKeyUp) = Stacked(name, extents, 0, head_rows);
    model->source(Role::kKeyUp).is_transposed = true;
    model->source(Role::kValueUp) = Stacked(name, extents, latent.unrotated_dim, head_rows);
  }
  return absl::OkStatus();
}

// YaRN's share in the softmax scale: M(factor, mscale_all_dim)^2.
absl::StatusOr<double> YarnScoreScale(const FamilySource& source) {
  const Keys& keys = source.keys;
  const absl::StatusOr<std::string> type = keys.Text("rope.scaling.type", "none");
  if (!type.ok() || *type != "yarn") {
    return type.ok() ? absl::StatusOr<double>(1.0) : type.status();
  }
  ASSIGN_OR_RETURN(const double factor, keys.Positive("rope.scaling.factor", 1.0));
  const char* key =
      source.is_gguf() ? "rope.scaling.yarn_log_multiplier" : "rope.scaling.mscale_all_dim";
  double coefficient = 0;
  if (keys.Has(key)) {
    ASSIGN_OR_RETURN(coefficient, keys.metadata().Float(keys.Name(key)));
    coefficient *= source.is_gguf() ? 10 : 1;  // the file holds a tenth of it
  }
  const double multiplier = coefficient == 0 ? 1 : YarnMultiplier(factor, coefficient);
  return multiplier * multiplier;
}

}  // namespace

absl::Status AddMixtralExperts(const FamilySource& source, ModelSpec* model) {
  ASSIGN_OR_RETURN(ExpertsSpec experts, ReadExperts(source, "feed_forward_length"));
  experts.renormalizes = true;
  Rename(source, Role::kRouter, "blk.*.ffn_gate_inp.weight",
         "model.layers.*.block_sparse_moe.gate.weight", model);
  Rename(source, Role::kExpertGate, "blk.*.ffn_gate_exps.weight",
         "model.layers.*.block_sparse_moe.experts.#.w1.weight", model);
  Rename(source, Role::kExpertUp, "blk.*.ffn_up_exps.weight",
         "model.layers.*.block_sparse_moe.experts.#.w3.weight", model);
  Rename(source, Role::kExpertDown, "blk.*.ffn_down_exps.weight",
         "model.layers.*.block_sparse_moe.experts.#.w2.weight", model);
  PutExperts(
      experts, [](int64_t) { return true; }, model);
  FindExpertTensors(source, model);
  return absl::OkStatus();
}

absl::StatusOr<ModelSpec> Qwen2MoeSpec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, Qwen2Spec(source));
  ASSIGN_OR_RETURN(ExpertsSpec experts, ReadExperts(source, "expert_feed_forward_length"));
  ASSIGN_OR_RETURN(experts.renormalizes, source.keys.Flag("expert_weights_norm", false));
  ASSIGN_OR_RETURN(experts.shared_dim,
                   source.keys.Count("expert_shared_feed_forward_length", kWidthMax));
  experts.has_shared_gate = experts.shared_dim > 0;
  Rename(source, Role::kSharedGate, "blk.*.ffn_gate_shexp.weight",
         "model.layers.*.mlp.shared_expert.gate_proj.weight", &model);
  Rename(source, Role::kSharedUp, "blk.*.ffn_up_shexp.weight",
         "model.layers.*.mlp.shared_expert.up_proj.weight", &model);
  Rename(source, Role::kSharedDown, "blk.*.ffn_down_shexp.weight",
         "model.layers.*.mlp.shared_expert.down_proj.weight", &model);
  ASSIGN_OR_RETURN(const auto is_sparse, QwenSparseLayers(source));
  PutExperts(experts, is_sparse, &model);
  FindExpertTensors(source, &model);
  return model;
}

absl::StatusOr<ModelSpec> Qwen3MoeSpec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, Qwen3Spec(source));
  ASSIGN_OR_RETURN(ExpertsSpec experts, ReadExperts(source, "expert_feed_forward_length"));
  // GGUF has no key for it; all published models renormalise.
  ASSIGN_OR_RETURN(experts.renormalizes, source.keys.Flag("expert_weights_norm", source.is_gguf()));
  ASSIGN_OR_RETURN(const auto is_sparse, QwenSparseLayers(source));
  PutExperts(experts, is_sparse, &model);
  FindExpertTensors(source, &model);
  return model;
}

// OLMoE: queries and keys are normed over all heads at once.
absl::StatusOr<ModelSpec> OlmoeSpec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kHalfSplitRope));
  SetQueryKeyNorm(QueryKeyNorm::kAllHeads, &model);
  if (source.keys.Has("attention.clamp_kqv")) {
    return source.keys.Error("attention.clamp_kqv",
                             "limits queries, keys and values; this build does not");
  }
  ASSIGN_OR_RETURN(ExpertsSpec experts, ReadExperts(source, "feed_forward_length"));
  ASSIGN_OR_RETURN(experts.renormalizes, source.keys.Flag("expert_weights_norm", false));
  PutExperts(
      experts, [](int64_t) { return true; }, &model);
  FindExpertTensors(source, &model);
  return model;
}

// MiniMax M2: Mixtral's tensors with sigmoid routing and a correction bias.
absl::StatusOr<ModelSpec> MiniMaxM2Spec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kHalfSplitRope));
  SetQueryKeyNorm(QueryKeyNorm::kAllHeads, &model);
  RETURN_IF_ERROR(AddMixtralExperts(source, &model));
  Rename(source, Role::kCorrectionBias, "blk.*.exp_probs_b.bias",
         "model.layers.*.block_sparse_moe.e_score_correction_bias", &model);
  ForEachLayer(&model, [](int64_t, LayerSpec& layer) {
    layer.feed_forward.experts->routing = Routing::kSigmoid;
    layer.feed_forward.experts->has_correction_bias = true;
  });
  return model;
}

absl::StatusOr<ModelSpec> Glm4MoeSpec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kHalfSplitRope));
  Rename(source, Role::kFeedForwardNorm, "blk.*.post_attention_norm.weight",
         "model.layers.*.post_attention_layernorm.weight", &model);
  const bool has_norms = IsStored(source, model, Role::kQueryNorm);
  ForEachLayer(&model, [&](int64_t, LayerSpec& layer) {
    layer.attention.query_key_norm = has_norms ? QueryKeyNorm::kPerHead : QueryKeyNorm::kNone;
  });
  ASSIGN_OR_RETURN(ExpertsSpec experts, ReadExperts(source, "expert_feed_forward_length"));
  experts.routing = Routing::kSigmoid;
  experts.group_score = GroupScore::kSumOfTwo;
  experts.has_correction_bias = true;
  ASSIGN_OR_RETURN(experts.renormalizes, source.keys.Flag("expert_weights_norm", true));
  RETURN_IF_ERROR(AddGroupedExperts(source, experts, &model));
  return model;
}

// Sinks, alternating windows, biases everywhere, a clamped gate; the experts of safetensors files
// lie transposed, gate and up in alternating columns.
// Gate and up rows of an expert alternate. Plain tensors are [experts, inputs, outputs], those in
// MXFP4 [experts, outputs, inputs].
void PutGptOssExperts(const FamilySource& source, const ExpertsSpec& experts, ModelSpec* model) {
  const int64_t width = experts.hidden_dim;
  const int64_t dim = model->model_dim;
  const bool is_packed = source.keys.metadata()
                             .TensorExtents("model.layers.0.mlp.experts.gate_up_proj_blocks")
                             .has_value();
  const auto matrices = [&](const char* name, int64_t outputs, int64_t inputs) {
    TensorSource stacked = is_packed ? Stacked(name, {experts.count, outputs, inputs}, 0, outputs)
                                     : Stacked(name, {experts.count, inputs, outputs}, 0, inputs);
    stacked.is_transposed = !is_packed;
    return stacked;
  };
  TensorSource gate = matrices("model.layers.*.mlp.experts.gate_up_proj", 2 * width, dim);
  gate.row_step = 2;
  TensorSource gate_bias =
      Stacked("model.layers.*.mlp.experts.gate_up_proj_bias", {experts.count, 2 * width}, 0, 0);
  gate_bias.row_step = 2;
  model->source(Role::kExpertGate) = gate;
  model->source(Role::kExpertGateBias) = gate_bias;
  gate.first_row = 1;
  gate_bias.first_row = 1;
  model->source(Role::kExpertUp) = std::move(gate);
  model->source(Role::kExpertUpBias) = std::move(gate_bias);
  model->source(Role::kExpertDown) = matrices("model.layers.*.mlp.experts.down_proj", dim, width);
}

absl::StatusOr<ModelSpec> GptOssSpec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, BeginSpec(source));
  RETURN_IF_ERROR(AddAttention(source, &model));
  RopeQuestion question = QuestionOf(source, kHalfSplitRope, model);
  question.truncates_yarn = false;
  ASSIGN_OR_RETURN(RopeSpec rope, ReadRope(source.keys, question));
  model.ropes.push_back(std::move(rope));
  RETURN_IF_ERROR(AddWindows(source, /*period=*/2, &model));
  Rename(source, Role::kFeedForwardNorm, "blk.*.post_attention_norm.weight",
         "model.layers.*.post_attention_layernorm.weight", &model);
  Rename(source, Role::kRouter, "blk.*.ffn_gate_inp.weight", "model.layers.*.mlp.router.weight",
         &model);
  ASSIGN_OR_RETURN(
      ExpertsSpec experts,
      ReadExperts(source, source.is_gguf() ? "expert_feed_forward_length" : "feed_forward_length"));
  experts.routing = Routing::kSoftmaxChosen;
  experts.has_router_bias = true;
  experts.has_bias = true;
  ASSIGN_OR_RETURN(const double limit, source.keys.Positive("swiglu_limit", 7.0));
  ASSIGN_OR_RETURN(const double alpha, source.keys.Positive("swiglu_alpha", 1.702));
  ForEachLayer(&model, [&](int64_t, LayerSpec& layer) {
    layer.attention.has_bias = true;
    layer.attention.has_output_bias = true;
    layer.attention.has_sinks = true;
    layer.feed_forward.activation = kernels::Activation::kClampedSwish;
    layer.feed_forward.swish_limit = static_cast<float>(limit);
    layer.feed_forward.swish_alpha = static_cast<float>(alpha);
  });
  PutExperts(
      experts, [](int64_t) { return true; }, &model);
  if (!source.is_gguf()) {
    PutGptOssExperts(source, experts, &model);
  }
  return model;
}

absl::StatusOr<ModelSpec> DeepSeekSpec(const FamilySource& source) {
  const Keys& keys = source.keys;
  ASSIGN_OR_RETURN(ModelSpec model, BeginSpec(source));
  RETURN_IF_ERROR(AddLatentAttention(source, &model));
  RopeQuestion question = QuestionOf(source, kInterleavedRope, model);
  question.head_dim = model.layers[0].attention.latent->rotated_dim;
  question.has_yarn_multiplier = false;
  ASSIGN_OR_RETURN(RopeSpec rope, ReadRope(keys, question));
  model.ropes.push_back(std::move(rope));
  ASSIGN_OR_RETURN(const double score_scale, YarnScoreScale(source));
  ForEachLayer(&model, [&](int64_t, LayerSpec& layer) { layer.attention.scale *= score_scale; });
  RETURN_IF_ERROR(AddFeedForward(source, &model));
  ASSIGN_OR_RETURN(ExpertsSpec experts, ReadExperts(source, "expert_feed_forward_length"));
  bool is_sigmoid = std::string_view(source.family) == "deepseek_v3";
  if (source.is_gguf()) {
    ASSIGN_OR_RETURN(const int64_t gating, keys.Count("expert_gating_func", 4));
    if (gating > 2) {
      return keys.Error(
          "expert_gating_func",
          absl::StrFormat("is %d; this build knows 1, softmax, and 2, sigmoid", gating));
    }
    is_sigmoid = gating == 2;
  }
  if (is_sigmoid) {
    experts.routing = Routing::kSigmoid;
    experts.group_score = GroupScore::kSumOfTwo;
    experts.has_correction_bias = true;
    ASSIGN_OR_RETURN(experts.renormalizes, keys.Flag("expert_weights_norm", !source.is_gguf()));
  }
  RETURN_IF_ERROR(AddGroupedExperts(source, experts, &model));
  const absl::StatusOr<std::string> method = keys.Text("expert_group_method", "");
  RETURN_IF_ERROR(method.status());
  if (*method == "greedy") {
    ForEachLayer(&model, [](int64_t, LayerSpec& layer) {
      if (layer.feed_forward.experts.has_value()) {
        layer.feed_forward.experts->groups = 1;
        layer.feed_forward.experts->used_groups = 1;
      }
    });
  }
  return model;
}

}  // namespace trireme::spec
