#include "runtime/spec/dense_families.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/status_macros.h"
#include "runtime/spec/expert_families.h"
#include "runtime/spec/read_rope.h"

namespace trireme::spec {
namespace {

// Norms after both sublayers, with or without those before them.
void SetOutputNorms(bool has_input_norms, ModelSpec* model) {
  ForEachLayer(model, [&](int64_t, LayerSpec& layer) {
    layer.has_input_norms = has_input_norms;
    layer.has_output_norms = true;
  });
}

// Layers with a window get a rope of their own, without the scaling of the others. `base` is used
// where the checkpoint names none for them.
absl::Status AddLocalRope(const FamilySource& source, double base, ModelSpec* model) {
  if (std::none_of(model->layers.begin(), model->layers.end(),
                   [](const LayerSpec& layer) { return layer.attention.window > 0; })) {
    return absl::OkStatus();
  }
  RopeQuestion question = QuestionOf(source, kHalfSplitRope, *model);
  question.base = base;
  ASSIGN_OR_RETURN(RopeSpec local, ReadLocalRope(source.keys, question));
  model->ropes.push_back(std::move(local));
  ForEachLayer(model, [](int64_t, LayerSpec& layer) {
    layer.attention.rope_index = layer.attention.window > 0 ? 1 : 0;
  });
  return absl::OkStatus();
}

// A feed-forward of squared ReLU without gate.
void SetSquaredReluFeedForward(ModelSpec* model) {
  ForEachLayer(model, [](int64_t, LayerSpec& layer) {
    layer.feed_forward.is_gated = false;
    layer.feed_forward.activation = kernels::Activation::kRelu2;
    layer.feed_forward.has_gate_bias = false;
  });
}

// What Gemma 2 and 3 share: GELU, four norms with gain 1 + w, a scaled embedding.
absl::StatusOr<ModelSpec> GemmaSpec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kHalfSplitRope));
  model.norm_gain_offset = source.is_gguf() ? 0 : 1;  // converters add it
  model.embedding_scale = std::sqrt(static_cast<double>(model.model_dim));
  SetOutputNorms(/*has_input_norms=*/true, &model);
  Rename(source, Role::kFeedForwardNorm, "blk.*.ffn_norm.weight",
         "model.layers.*.pre_feedforward_layernorm.weight", &model);
  const auto layers = static_cast<int64_t>(model.layers.size());
  double scale = model.layers[0].attention.scale;
  if (!source.is_gguf()) {
    ASSIGN_OR_RETURN(const double query_scale,
                     source.keys.Positive("attention.query_scale", 256.0));
    scale = 1 / std::sqrt(query_scale);
  } else if ((model.family == "gemma2" && layers == 46) ||
             (model.family == "gemma3" && layers == 62)) {
    // The 27B models divide by the root of model_dim / heads, and their files have no key for it.
    scale = 1 / std::sqrt(static_cast<double>(model.model_dim) /
                          static_cast<double>(model.layers[0].attention.query_heads));
  }
  ForEachLayer(&model, [&](int64_t, LayerSpec& layer) {
    layer.attention.scale = scale;
    layer.feed_forward.activation = kernels::Activation::kGeluTanh;
  });
  return model;
}

}  // namespace

// Llama 1 to 3, Mistral, SmolLM2 and everybody who kept their shape: grouped-query attention with
// rotary positions, gated SiLU feed-forward, RMS norms before both. Mixtral's files say "llama".
absl::StatusOr<ModelSpec> LlamaSpec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kPermutedRope));
  RETURN_IF_ERROR(AddWindows(source, /*period=*/0, &model));
  ASSIGN_OR_RETURN(const int64_t experts, source.keys.Count("expert_count", kExpertsMax));
  if (experts > 0) {
    RETURN_IF_ERROR(AddMixtralExperts(source, &model));
  }
  return model;
}

absl::Status AddQwenWindows(const FamilySource& source, ModelSpec* model) {
  ASSIGN_OR_RETURN(const bool is_on, source.keys.Flag("attention.use_window", source.is_gguf()));
  if (!is_on) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(AddWindows(source, /*period=*/0, model));
  if (!source.is_gguf() && !source.keys.Has("attention.layer_types")) {
    ASSIGN_OR_RETURN(const int64_t first, source.keys.Count("attention.window_layers", kLayersMax));
    ForEachLayer(model, [&](int64_t i, LayerSpec& layer) {
      layer.attention.window = i < first ? 0 : layer.attention.window;
    });
  }
  return absl::OkStatus();
}

// Biases of queries, keys and values, which no key announces.
absl::StatusOr<ModelSpec> Qwen2Spec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kHalfSplitRope));
  ForEachLayer(&model, [](int64_t, LayerSpec& layer) { layer.attention.has_bias = true; });
  RETURN_IF_ERROR(AddQwenWindows(source, &model));
  return model;
}

// Each head's queries and keys are normed before their rotation.
absl::StatusOr<ModelSpec> Qwen3Spec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kHalfSplitRope));
  SetQueryKeyNorm(QueryKeyNorm::kPerHead, &model);
  RETURN_IF_ERROR(AddQwenWindows(source, &model));
  return model;
}

// One matrix for queries, keys and values, one for gate and up.
absl::StatusOr<ModelSpec> Phi3Spec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kHalfSplitRope));
  FuseQueryKeyValue(source, &model);
  FuseGateUp("blk.*.ffn_up.weight", "model.layers.*.mlp.gate_up_proj.weight", source, &model);
  RETURN_IF_ERROR(AddWindows(source, /*period=*/0, &model));
  return model;
}

absl::StatusOr<ModelSpec> Gemma2Spec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, GemmaSpec(source));
  ASSIGN_OR_RETURN(const double soft_cap, source.keys.Positive("attn_logit_softcapping", 50.0));
  ASSIGN_OR_RETURN(model.logit_soft_cap, source.keys.Positive("final_logit_softcapping", 30.0));
  ForEachLayer(&model, [&](int64_t, LayerSpec& layer) { layer.attention.soft_cap = soft_cap; });
  RETURN_IF_ERROR(AddWindows(source, /*period=*/2, &model));
  return model;
}

absl::StatusOr<ModelSpec> Gemma3Spec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, GemmaSpec(source));
  SetQueryKeyNorm(QueryKeyNorm::kPerHead, &model);
  RETURN_IF_ERROR(AddWindows(source, /*period=*/6, &model));
  RETURN_IF_ERROR(AddLocalRope(source, /*base=*/10000, &model));
  return model;
}

// Every fourth layer has no positions.
absl::StatusOr<ModelSpec> SmolLm3Spec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kPermutedRope));
  const auto layers = static_cast<int64_t>(model.layers.size());
  ASSIGN_OR_RETURN(const int64_t interval,
                   source.keys.ExtentOr("attention.rope_interval", kLayersMax, 4));
  std::vector<int64_t> has_rope(layers);
  for (int64_t i = 0; i < layers; ++i) {
    has_rope[i] = (i + 1) % interval != 0 ? 1 : 0;
  }
  if (source.keys.Has("attention.rope_layers")) {
    ASSIGN_OR_RETURN(has_rope,
                     source.keys.metadata().Integers(source.keys.Name("attention.rope_layers")));
    if (static_cast<int64_t>(has_rope.size()) < layers) {
      return source.keys.Error("attention.rope_layers", "has fewer entries than there are layers");
    }
  }
  ForEachLayer(&model, [&](int64_t i, LayerSpec& layer) {
    layer.attention.rope_index = has_rope[i] != 0 ? 0 : -1;
  });
  RETURN_IF_ERROR(AddQwenWindows(source, &model));
  return model;
}

// Norms after the sublayers only; queries and keys are normed over all heads at once. OLMo 3, whose
// GGUF files say "olmo2" too, has windows in three of four layers.
absl::StatusOr<ModelSpec> Olmo2Spec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kHalfSplitRope));
  SetOutputNorms(/*has_input_norms=*/false, &model);
  SetQueryKeyNorm(QueryKeyNorm::kAllHeads, &model);
  RETURN_IF_ERROR(AddWindows(source, /*period=*/4, &model));
  ASSIGN_OR_RETURN(const double base,
                   source.keys.Positive("rope.freq_base", source.defaults.rope_base));
  RETURN_IF_ERROR(AddLocalRope(source, base, &model));
  return model;
}

// Norms after the sublayers only; where there are windows, the other layers have no positions.
absl::StatusOr<ModelSpec> Exaone4Spec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kHalfSplitRope));
  SetOutputNorms(/*has_input_norms=*/false, &model);
  SetQueryKeyNorm(QueryKeyNorm::kPerHead, &model);
  RETURN_IF_ERROR(AddWindows(source, /*period=*/4, &model));
  ASSIGN_OR_RETURN(const int64_t window,
                   source.keys.Count("attention.sliding_window", kPositionsMax));
  ForEachLayer(&model, [&](int64_t, LayerSpec& layer) {
    layer.attention.rope_index = window > 0 && layer.attention.window == 0 ? -1 : 0;
  });
  return model;
}

// Four norms, one matrix for gate and up, interleaved rotation of a part of each head.
absl::StatusOr<ModelSpec> Glm4Spec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kInterleavedRope));
  FuseGateUp("blk.*.ffn_up.weight", "model.layers.*.mlp.gate_up_proj.weight", source, &model);
  SetOutputNorms(/*has_input_norms=*/true, &model);
  Rename(source, Role::kPostAttentionNorm, "blk.*.post_attention_norm.weight",
         "model.layers.*.post_self_attn_layernorm.weight", &model);
  Rename(source, Role::kPostFeedForwardNorm, "blk.*.post_ffw_norm.weight",
         "model.layers.*.post_mlp_layernorm.weight", &model);
  return model;
}

absl::StatusOr<ModelSpec> GraniteSpec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kPermutedRope));
  ASSIGN_OR_RETURN(model.embedding_scale, source.keys.Positive("embedding_scale", 1.0));
  ASSIGN_OR_RETURN(model.residual_scale, source.keys.Positive("residual_scale", 1.0));
  ASSIGN_OR_RETURN(const double divisor, source.keys.Positive("logit_scale", 1.0));
  model.logit_scale = 1 / divisor;
  return model;
}

absl::StatusOr<ModelSpec> Ernie45Spec(const FamilySource& source) {
  return LlamaLike(source, kInterleavedRope);
}

// LayerNorm, a feed-forward without gate, biases everywhere.
absl::StatusOr<ModelSpec> StarCoder2Spec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kHalfSplitRope, NormKind::kLayer));
  model.has_norm_bias = true;
  Rename(source, Role::kUp, "blk.*.ffn_up.weight", "model.layers.*.mlp.c_fc.weight", &model);
  Rename(source, Role::kUpBias, "blk.*.ffn_up.bias", "model.layers.*.mlp.c_fc.bias", &model);
  Rename(source, Role::kDown, "blk.*.ffn_down.weight", "model.layers.*.mlp.c_proj.weight", &model);
  Rename(source, Role::kDownBias, "blk.*.ffn_down.bias", "model.layers.*.mlp.c_proj.bias", &model);
  ForEachLayer(&model, [](int64_t, LayerSpec& layer) { layer.feed_forward.is_gated = false; });
  FindBiases(source, &model);
  RETURN_IF_ERROR(ReadActivation(source, kernels::Activation::kGeluTanh, &model));
  RETURN_IF_ERROR(AddWindows(source, /*period=*/0, &model));
  return model;
}

// Attention and feed-forward side by side on one LayerNorm; layers without a window have no
// positions.
absl::StatusOr<ModelSpec> Cohere2Spec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kInterleavedRope, NormKind::kLayer));
  ASSIGN_OR_RETURN(model.logit_scale, source.keys.Positive("logit_scale", 0.0625));
  RETURN_IF_ERROR(AddWindows(source, /*period=*/4, &model));
  ForEachLayer(&model, [](int64_t, LayerSpec& layer) {
    layer.is_parallel = true;
    layer.attention.rope_index = layer.attention.window > 0 ? 0 : -1;
  });
  return model;
}

// BitNet b1.58 (arXiv 2402.17764) as published with 2B parameters: norms before the output matrix
// and before `down`. Activations are not quantised as they were in training, which is part of the
// arithmetic, not of the model.
absl::StatusOr<ModelSpec> BitNetSpec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kHalfSplitRope));
  RETURN_IF_ERROR(ReadActivation(
      source, source.is_gguf() ? kernels::Activation::kSilu : kernels::Activation::kRelu2, &model));
  ForEachLayer(&model, [](int64_t, LayerSpec& layer) {
    layer.attention.has_attended_norm = true;
    layer.feed_forward.has_hidden_norm = true;
  });
  return model;
}

// LayerNorm with gain 1 + w, squared ReLU without gate, rotation of a part of each head.
absl::StatusOr<ModelSpec> NemotronSpec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kHalfSplitRope, NormKind::kLayer));
  model.has_norm_bias = true;
  model.norm_gain_offset = source.is_gguf() ? 0 : 1;
  SetSquaredReluFeedForward(&model);
  return model;
}

// Arcee's foundation models: Llama with another feed-forward.
absl::StatusOr<ModelSpec> ArceeSpec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kPermutedRope));
  SetSquaredReluFeedForward(&model);
  return model;
}

// Seed-OSS: biases of queries, keys and values, which LlamaLike finds.
absl::StatusOr<ModelSpec> SeedOssSpec(const FamilySource& source) {
  ASSIGN_OR_RETURN(ModelSpec model, LlamaLike(source, kHalfSplitRope));
  Rename(source, Role::kFeedForwardNorm, "blk.*.post_attention_norm.weight",
         "model.layers.*.post_attention_layernorm.weight", &model);
  return model;
}

}  // namespace trireme::spec
