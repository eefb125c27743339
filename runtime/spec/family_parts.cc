#include "runtime/spec/family_parts.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/spec/metadata.h"
#include "runtime/spec/tensor_roles.h"

namespace trireme::spec {
namespace {

constexpr int64_t kVocabularyMax = std::numeric_limits<int32_t>::max();

absl::Status FillVocabulary(const FamilySource& source, ModelSpec* model) {
  const Keys& keys = source.keys;
  const Metadata& metadata = keys.metadata();
  const std::string& name = model->source(Role::kEmbedding).name;
  const std::optional<std::vector<int64_t>> embedding = metadata.TensorExtents(name);
  if (!embedding.has_value()) {
    return metadata.ErrorAt(name, "is missing: the file holds no tensor of this name");
  }
  if (embedding->size() != 2 || (*embedding)[1] != model->model_dim) {
    return metadata.ErrorAt(name, absl::StrFormat("has a shape whose rows are %d wide; %s says %d",
                                                  embedding->empty() ? 1 : embedding->back(),
                                                  keys.Name("embedding_length"), model->model_dim));
  }
  model->vocabulary = (*embedding)[0];
  if (model->vocabulary < 1 || model->vocabulary > kVocabularyMax) {
    return metadata.ErrorAt(name, absl::StrFormat("has %d rows", model->vocabulary));
  }
  if (keys.Has("vocab_size")) {
    ASSIGN_OR_RETURN(const int64_t stated, keys.Extent("vocab_size", kVocabularyMax));
    if (stated != model->vocabulary) {
      return keys.Error("vocab_size",
                        absl::StrFormat("is %d; %s has %d rows", stated, name, model->vocabulary));
    }
  }
  if (source.is_gguf() && metadata.Has("tokenizer.ggml.tokens")) {
    ASSIGN_OR_RETURN(const int64_t tokens, metadata.ArrayLength("tokenizer.ggml.tokens"));
    if (tokens != model->vocabulary) {
      return metadata.ErrorAt("tokenizer.ggml.tokens",
                              absl::StrFormat("has %d tokens; token_embd.weight has %d rows",
                                              tokens, model->vocabulary));
    }
  }
  if (source.is_gguf()) {
    model->tied_output = !IsStored(source, *model, Role::kOutput);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(model->tied_output, keys.Flag("tie_embeddings", source.defaults.ties_output));
  return absl::OkStatus();
}

absl::StatusOr<bool> IsWindowed(const FamilySource& source, const std::string& type) {
  if (type == "sliding_attention" || type == "full_attention") {
    return type == "sliding_attention";
  }
  return source.keys.Error("attention.layer_types",
                           absl::StrFormat("holds \"%s\"; this build knows full_attention and "
                                           "sliding_attention",
                                           type));
}

// One matrix among several that are stored one after another, rows from first_row of `rows`.
TensorSource Part(const char* name, int64_t rows, int64_t columns, int64_t first_row) {
  TensorSource part;
  part.name = name;
  part.extents = columns == 0 ? std::vector<int64_t>{rows} : std::vector<int64_t>{rows, columns};
  part.first_row = first_row;
  return part;
}

}  // namespace

void ForEachLayer(ModelSpec* model, const std::function<void(int64_t, LayerSpec&)>& change) {
  for (size_t i = 0; i < model->layers.size(); ++i) {
    change(static_cast<int64_t>(i), model->layers[i]);
  }
}

void SetQueryKeyNorm(QueryKeyNorm norm, ModelSpec* model) {
  ForEachLayer(model, [&](int64_t, LayerSpec& layer) { layer.attention.query_key_norm = norm; });
}

void Rename(const FamilySource& source, Role role, const char* gguf, const char* hugging_face,
            ModelSpec* model) {
  model->source(role).name = source.is_gguf() ? gguf : hugging_face;
}

bool IsStored(const FamilySource& source, const ModelSpec& model, Role role) {
  return source.keys.metadata()
      .TensorExtents(TensorName(model.source(role), /*layer=*/0, /*index=*/0))
      .has_value();
}

absl::StatusOr<ModelSpec> BeginSpec(const FamilySource& source, NormKind norm) {
  const Keys& keys = source.keys;
  ModelSpec model;
  model.family = source.family;
  model.norm = norm;
  model.sources = DefaultSources(keys.metadata().container());
  ASSIGN_OR_RETURN(int64_t layers, keys.Extent("block_count", kLayersMax));
  if (source.is_gguf()) {
    // Layers of a draft module stand behind the trunk and count here.
    ASSIGN_OR_RETURN(const int64_t drafts, keys.Count("nextn_predict_layers", layers - 1));
    layers -= drafts;
  }
  ASSIGN_OR_RETURN(model.model_dim, keys.Extent("embedding_length", kWidthMax));
  ASSIGN_OR_RETURN(model.context, keys.Extent("context_length", kPositionsMax));
  const char* epsilon =
      norm == NormKind::kRms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon";
  ASSIGN_OR_RETURN(
      model.norm_epsilon,
      keys.Positive(epsilon,
                    source.is_gguf() ? std::nullopt : std::optional(source.defaults.norm_epsilon)));
  RETURN_IF_ERROR(FillVocabulary(source, &model));
  model.layers.resize(layers);
  return model;
}

absl::Status AddAttention(const FamilySource& source, ModelSpec* model) {
  const Keys& keys = source.keys;
  const auto layers = static_cast<int64_t>(model->layers.size());
  AttentionSpec attention;
  ASSIGN_OR_RETURN(attention.query_heads, keys.Uniform("attention.head_count", layers, kWidthMax));
  attention.key_value_heads = attention.query_heads;
  if (keys.Has("attention.head_count_kv")) {
    ASSIGN_OR_RETURN(attention.key_value_heads,
                     keys.Uniform("attention.head_count_kv", layers, kWidthMax));
  }
  if (attention.query_heads % attention.key_value_heads != 0) {
    return keys.Error("attention.head_count_kv",
                      absl::StrFormat("is %d, which does not divide attention.head_count, %d",
                                      attention.key_value_heads, attention.query_heads));
  }
  if (!keys.Has("attention.key_length") && model->model_dim % attention.query_heads != 0) {
    return keys.Error("attention.head_count",
                      absl::StrFormat("is %d, which does not divide embedding_length, %d",
                                      attention.query_heads, model->model_dim));
  }
  ASSIGN_OR_RETURN(attention.head_dim, keys.ExtentOr("attention.key_length", kWidthMax,
                                                     model->model_dim / attention.query_heads));
  ASSIGN_OR_RETURN(const int64_t value_dim,
                   keys.ExtentOr("attention.value_length", kWidthMax, attention.head_dim));
  if (value_dim != attention.head_dim) {
    return keys.Error("attention.value_length",
                      absl::StrFormat("is %d; keys are %d wide, and this build needs equal widths",
                                      value_dim, attention.head_dim));
  }
  ASSIGN_OR_RETURN(
      attention.scale,
      keys.Positive("attention.scale", 1 / std::sqrt(static_cast<double>(attention.head_dim))));
  ForEachLayer(model, [&](int64_t, LayerSpec& layer) { layer.attention = attention; });
  return absl::OkStatus();
}

RopeQuestion QuestionOf(const FamilySource& source, RopeLayout layout, const ModelSpec& model) {
  return {.pairing = source.is_gguf() ? layout.gguf : layout.hugging_face,
          .head_dim = model.layers[0].attention.head_dim,
          .context = model.context,
          .base = source.is_gguf() ? 10000.0 : source.defaults.rope_base};
}

absl::Status AddRope(const FamilySource& source, RopeLayout layout, ModelSpec* model) {
  ASSIGN_OR_RETURN(RopeSpec rope, ReadRope(source.keys, QuestionOf(source, layout, *model)));
  model->ropes.push_back(std::move(rope));
  return absl::OkStatus();
}

absl::Status AddFeedForward(const FamilySource& source, ModelSpec* model) {
  ASSIGN_OR_RETURN(const int64_t hidden_dim,
                   source.keys.Uniform("feed_forward_length",
                                       static_cast<int64_t>(model->layers.size()), kWidthMax));
  ForEachLayer(model,
               [&](int64_t, LayerSpec& layer) { layer.feed_forward.hidden_dim = hidden_dim; });
  return absl::OkStatus();
}

absl::StatusOr<ModelSpec> LlamaLike(const FamilySource& source, RopeLayout layout, NormKind norm) {
  ASSIGN_OR_RETURN(ModelSpec model, BeginSpec(source, norm));
  RETURN_IF_ERROR(AddAttention(source, &model));
  RETURN_IF_ERROR(AddRope(source, layout, &model));
  RETURN_IF_ERROR(AddFeedForward(source, &model));
  if (!IsStored(source, model, Role::kQuery)) {
    ModelSpec fused = model;
    FuseQueryKeyValue(source, &fused);
    if (IsStored(source, fused, Role::kQuery)) {
      model = std::move(fused);
    }
  }
  FindBiases(source, &model);
  return model;
}

void FindBiases(const FamilySource& source, ModelSpec* model) {
  const bool asks_attention = source.keys.Flag("attention.bias", false).value_or(false);
  const bool asks_hidden = source.keys.Flag("feed_forward_bias", false).value_or(false);
  const bool has_query_bias = asks_attention || IsStored(source, *model, Role::kQueryBias);
  const bool has_output_bias = IsStored(source, *model, Role::kAttentionOutputBias);
  const bool has_gate_bias = asks_hidden || IsStored(source, *model, Role::kGateBias);
  const bool has_up_bias = asks_hidden || IsStored(source, *model, Role::kUpBias);
  const bool has_down_bias = asks_hidden || IsStored(source, *model, Role::kDownBias);
  ForEachLayer(model, [&](int64_t, LayerSpec& layer) {
    layer.attention.has_bias = has_query_bias;
    layer.attention.has_output_bias = has_output_bias;
    const bool is_dense = layer.feed_forward.hidden_dim > 0;
    layer.feed_forward.has_gate_bias = is_dense && layer.feed_forward.is_gated && has_gate_bias;
    layer.feed_forward.has_up_bias = is_dense && has_up_bias;
    layer.feed_forward.has_down_bias = is_dense && has_down_bias;
  });
}

absl::StatusOr<std::vector<bool>> WindowedLayers(const FamilySource& source, int64_t layers,
                                                 int64_t period) {
  const Keys& keys = source.keys;
  std::vector<bool> windowed(layers);
  if (!source.is_gguf() && keys.Has("attention.layer_types")) {
    ASSIGN_OR_RETURN(const std::vector<std::string> types,
                     keys.metadata().Strings(keys.Name("attention.layer_types")));
    if (static_cast<int64_t>(types.size()) < layers) {
      return keys.Error("attention.layer_types",
                        absl::StrFormat("is an array of %d entries; the model has %d layers",
                                        types.size(), layers));
    }
    for (int64_t i = 0; i < layers; ++i) {
      ASSIGN_OR_RETURN(const bool is_windowed, IsWindowed(source, types[i]));
      windowed[i] = is_windowed;
    }
    return windowed;
  }
  constexpr char kPattern[] = "attention.sliding_window_pattern";
  const std::string name = keys.Name(kPattern);
  if (keys.Has(kPattern)) {
    if (const auto letters = keys.metadata().String(name); letters.ok() && !letters->empty()) {
      for (int64_t i = 0; i < layers; ++i) {  // "LLLG": local, local, local, global
        windowed[i] = (*letters)[static_cast<size_t>(i) % letters->size()] == 'L';
      }
      return windowed;
    }
    ASSIGN_OR_RETURN(const std::vector<int64_t> values, keys.metadata().Integers(name));
    if (keys.metadata().ArrayLength(name).ok()) {
      if (static_cast<int64_t>(values.size()) < layers) {
        return keys.Error(kPattern,
                          absl::StrFormat("is an array of %d entries; the model has %d layers",
                                          values.size(), layers));
      }
      for (int64_t i = 0; i < layers; ++i) {
        windowed[i] = values[i] != 0;
      }
      return windowed;
    }
    ASSIGN_OR_RETURN(period, keys.Count(kPattern, kLayersMax));
  }
  for (int64_t i = 0; i < layers; ++i) {
    windowed[i] = period == 0 || i % period < period - 1;
  }
  return windowed;
}

absl::Status AddWindows(const FamilySource& source, int64_t period, ModelSpec* model) {
  ASSIGN_OR_RETURN(const int64_t window,
                   source.keys.Count("attention.sliding_window", kPositionsMax));
  if (window == 0) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<bool> windowed,
                   WindowedLayers(source, static_cast<int64_t>(model->layers.size()), period));
  ForEachLayer(model, [&](int64_t i, LayerSpec& layer) {
    layer.attention.window = windowed[i] ? window : 0;
  });
  return absl::OkStatus();
}

void FuseQueryKeyValue(const FamilySource& source, ModelSpec* model) {
  const AttentionSpec& attention = model->layers[0].attention;
  const int64_t query_dim = attention.query_heads * attention.head_dim;
  const int64_t key_dim = attention.key_value_heads * attention.head_dim;
  const int64_t rows = query_dim + 2 * key_dim;
  const char* matrix =
      source.is_gguf() ? "blk.*.attn_qkv.weight" : "model.layers.*.self_attn.qkv_proj.weight";
  const char* bias =
      source.is_gguf() ? "blk.*.attn_qkv.bias" : "model.layers.*.self_attn.qkv_proj.bias";
  model->source(Role::kQuery) = Part(matrix, rows, model->model_dim, 0);
  model->source(Role::kKey) = Part(matrix, rows, model->model_dim, query_dim);
  model->source(Role::kValue) = Part(matrix, rows, model->model_dim, query_dim + key_dim);
  model->source(Role::kQueryBias) = Part(bias, rows, 0, 0);
  model->source(Role::kKeyBias) = Part(bias, rows, 0, query_dim);
  model->source(Role::kValueBias) = Part(bias, rows, 0, query_dim + key_dim);
}

void FuseGateUp(const char* gguf, const char* hugging_face, const FamilySource& source,
                ModelSpec* model) {
  const int64_t hidden = model->layers[0].feed_forward.hidden_dim;
  const char* name = source.is_gguf() ? gguf : hugging_face;
  model->source(Role::kGate) = Part(name, 2 * hidden, model->model_dim, 0);
  model->source(Role::kUp) = Part(name, 2 * hidden, model->model_dim, hidden);
}

absl::Status ReadActivation(const FamilySource& source, kernels::Activation fallback,
                            ModelSpec* model) {
  ASSIGN_OR_RETURN(const std::string name, source.keys.Text("hidden_activation", ""));
  kernels::Activation activation = fallback;
  if (name == "silu" || name == "swish") {
    activation = kernels::Activation::kSilu;
  } else if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast") {
    activation = kernels::Activation::kGeluTanh;
  } else if (name == "relu2") {
    activation = kernels::Activation::kRelu2;
  } else if (!name.empty()) {
    return source.keys.Error(
        "hidden_activation",
        absl::StrFormat("is \"%s\"; this build knows silu, gelu_pytorch_tanh and relu2", name));
  }
  ForEachLayer(model,
               [&](int64_t, LayerSpec& layer) { layer.feed_forward.activation = activation; });
  return absl::OkStatus();
}

}  // namespace trireme::spec
