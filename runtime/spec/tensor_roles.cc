#include "runtime/spec/tensor_roles.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "runtime/base/check.h"
#include "runtime/spec/model_spec.h"
#include "runtime/spec/tensor_source.h"

namespace trireme::spec {
namespace {

bool HasNormBias(const ModelSpec& model, const LayerSpec& /*layer*/) { return model.has_norm_bias; }
bool HasInputNorm(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.has_input_norms;
}
bool HasInputNormBias(const ModelSpec& model, const LayerSpec& layer) {
  return layer.has_input_norms && model.has_norm_bias;
}
bool HasPlainQuery(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return !layer.attention.latent.has_value() || layer.attention.latent->query_rank == 0;
}
bool HasPlainAttention(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return !layer.attention.latent.has_value();
}
bool HasAttentionBias(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.attention.has_bias;
}
bool HasQueryKeyNorm(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.attention.query_key_norm != QueryKeyNorm::kNone;
}
bool HasSinks(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.attention.has_sinks;
}
bool HasQueryRank(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.attention.latent.has_value() && layer.attention.latent->query_rank > 0;
}
bool HasLatent(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.attention.latent.has_value();
}
bool HasAttendedNorm(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.attention.has_attended_norm;
}
bool HasAttentionOutputBias(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.attention.has_output_bias;
}
bool HasOutputNorm(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.has_output_norms;
}
bool HasFeedForwardNorm(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.has_input_norms && !layer.is_parallel;
}
bool HasFeedForwardNormBias(const ModelSpec& model, const LayerSpec& layer) {
  return layer.has_input_norms && !layer.is_parallel && model.has_norm_bias;
}
bool HasDense(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.feed_forward.hidden_dim > 0;
}
bool HasGate(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.feed_forward.hidden_dim > 0 && layer.feed_forward.is_gated;
}
bool HasGateBias(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.feed_forward.has_gate_bias;
}
bool HasHiddenNorm(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.feed_forward.has_hidden_norm;
}
bool HasUpBias(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.feed_forward.has_up_bias;
}
bool HasDownBias(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.feed_forward.has_down_bias;
}
bool HasExperts(const ModelSpec& /*model*/, const LayerSpec& layer) {
  return layer.feed_forward.experts.has_value();
}
bool HasRouterBias(const ModelSpec& model, const LayerSpec& layer) {
  return HasExperts(model, layer) && layer.feed_forward.experts->has_router_bias;
}
bool HasCorrectionBias(const ModelSpec& model, const LayerSpec& layer) {
  return HasExperts(model, layer) && layer.feed_forward.experts->has_correction_bias;
}
bool HasExpertBias(const ModelSpec& model, const LayerSpec& layer) {
  return HasExperts(model, layer) && layer.feed_forward.experts->has_bias;
}
bool HasShared(const ModelSpec& model, const LayerSpec& layer) {
  return HasExperts(model, layer) && layer.feed_forward.experts->shared_dim > 0;
}
bool HasSharedRouter(const ModelSpec& model, const LayerSpec& layer) {
  return HasExperts(model, layer) && layer.feed_forward.experts->has_shared_gate;
}

constexpr TensorRole kRoles[kRoleCount] = {
    {Role::kEmbedding, "token_embd.weight", "model.embed_tokens.weight", Place::kFirstStage,
     Extent::kVocabulary, Extent::kModelDim, SplitRule::kVocabularyRows, false, nullptr},
    {Role::kOutputNorm, "output_norm.weight", "model.norm.weight", Place::kLastStage,
     Extent::kModelDim, Extent::kOne, SplitRule::kReplicated, true, nullptr},
    {Role::kOutputNormBias, "output_norm.bias", "model.norm.bias", Place::kLastStage,
     Extent::kModelDim, Extent::kOne, SplitRule::kReplicated, false, HasNormBias},
    {Role::kOutput, "output.weight", "lm_head.weight", Place::kLastStage, Extent::kVocabulary,
     Extent::kModelDim, SplitRule::kVocabularyRows, false, nullptr},
    {Role::kAttentionNorm, "blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight",
     Place::kEveryLayer, Extent::kModelDim, Extent::kOne, SplitRule::kReplicated, true,
     HasInputNorm},
    {Role::kAttentionNormBias, "blk.*.attn_norm.bias", "model.layers.*.input_layernorm.bias",
     Place::kEveryLayer, Extent::kModelDim, Extent::kOne, SplitRule::kReplicated, false,
     HasInputNormBias},
    {Role::kQuery, "blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight",
     Place::kEveryLayer, Extent::kQueryDim, Extent::kModelDim, SplitRule::kQueryHeadRows, false,
     HasPlainQuery},
    {Role::kKey, "blk.*.attn_k.weight", "model.layers.*.self_attn.k_proj.weight",
     Place::kEveryLayer, Extent::kKeyValueDim, Extent::kModelDim, SplitRule::kKeyValueHeadRows,
     false, HasPlainAttention},
    {Role::kValue, "blk.*.attn_v.weight", "model.layers.*.self_attn.v_proj.weight",
     Place::kEveryLayer, Extent::kKeyValueDim, Extent::kModelDim, SplitRule::kKeyValueHeadRows,
     false, HasPlainAttention},
    {Role::kQueryBias, "blk.*.attn_q.bias", "model.layers.*.self_attn.q_proj.bias",
     Place::kEveryLayer, Extent::kQueryDim, Extent::kOne, SplitRule::kQueryHeadRows, false,
     HasAttentionBias},
    {Role::kKeyBias, "blk.*.attn_k.bias", "model.layers.*.self_attn.k_proj.bias",
     Place::kEveryLayer, Extent::kKeyValueDim, Extent::kOne, SplitRule::kKeyValueHeadRows, false,
     HasAttentionBias},
    {Role::kValueBias, "blk.*.attn_v.bias", "model.layers.*.self_attn.v_proj.bias",
     Place::kEveryLayer, Extent::kKeyValueDim, Extent::kOne, SplitRule::kKeyValueHeadRows, false,
     HasAttentionBias},
    {Role::kQueryNorm, "blk.*.attn_q_norm.weight", "model.layers.*.self_attn.q_norm.weight",
     Place::kEveryLayer, Extent::kQueryNormDim, Extent::kOne, SplitRule::kQueryHeadRows, true,
     HasQueryKeyNorm},
    {Role::kKeyNorm, "blk.*.attn_k_norm.weight", "model.layers.*.self_attn.k_norm.weight",
     Place::kEveryLayer, Extent::kKeyNormDim, Extent::kOne, SplitRule::kKeyValueHeadRows, true,
     HasQueryKeyNorm},
    {Role::kSinks, "blk.*.attn_sinks.weight", "model.layers.*.self_attn.sinks", Place::kEveryLayer,
     Extent::kQueryHeads, Extent::kOne, SplitRule::kQueryHeadRows, false, HasSinks},
    {Role::kQueryDown, "blk.*.attn_q_a.weight", "model.layers.*.self_attn.q_a_proj.weight",
     Place::kEveryLayer, Extent::kQueryRank, Extent::kModelDim, SplitRule::kReplicated, false,
     HasQueryRank},
    {Role::kQueryDownNorm, "blk.*.attn_q_a_norm.weight",
     "model.layers.*.self_attn.q_a_layernorm.weight", Place::kEveryLayer, Extent::kQueryRank,
     Extent::kOne, SplitRule::kReplicated, true, HasQueryRank},
    {Role::kQueryUp, "blk.*.attn_q_b.weight", "model.layers.*.self_attn.q_b_proj.weight",
     Place::kEveryLayer, Extent::kLatentQueryDim, Extent::kQueryRank, SplitRule::kQueryHeadRows,
     false, HasQueryRank},
    {Role::kLatent, "blk.*.attn_kv_a_mqa.weight",
     "model.layers.*.self_attn.kv_a_proj_with_mqa.weight", Place::kEveryLayer,
     Extent::kLatentKeyDim, Extent::kModelDim, SplitRule::kReplicated, false, HasLatent},
    {Role::kLatentNorm, "blk.*.attn_kv_a_norm.weight",
     "model.layers.*.self_attn.kv_a_layernorm.weight", Place::kEveryLayer, Extent::kLatentDim,
     Extent::kOne, SplitRule::kReplicated, true, HasLatent},
    {Role::kKeyUp, "blk.*.attn_k_b.weight", "model.layers.*.self_attn.kv_b_proj.weight",
     Place::kEveryHead, Extent::kLatentDim, Extent::kUnrotatedDim, SplitRule::kOwnHeads, false,
     HasLatent},
    {Role::kValueUp, "blk.*.attn_v_b.weight", "model.layers.*.self_attn.kv_b_proj.weight",
     Place::kEveryHead, Extent::kValueDim, Extent::kLatentDim, SplitRule::kOwnHeads, false,
     HasLatent},
    {Role::kAttendedNorm, "blk.*.attn_sub_norm.weight",
     "model.layers.*.self_attn.attn_sub_norm.weight", Place::kEveryLayer, Extent::kAttendedDim,
     Extent::kOne, SplitRule::kQueryHeadRows, true, HasAttendedNorm},
    {Role::kAttentionOutput, "blk.*.attn_output.weight", "model.layers.*.self_attn.o_proj.weight",
     Place::kEveryLayer, Extent::kModelDim, Extent::kAttendedDim, SplitRule::kQueryHeadColumns,
     false, nullptr},
    {Role::kAttentionOutputBias, "blk.*.attn_output.bias", "model.layers.*.self_attn.o_proj.bias",
     Place::kEveryLayer, Extent::kModelDim, Extent::kOne, SplitRule::kReplicated, false,
     HasAttentionOutputBias},
    {Role::kPostAttentionNorm, "blk.*.post_attention_norm.weight",
     "model.layers.*.post_attention_layernorm.weight", Place::kEveryLayer, Extent::kModelDim,
     Extent::kOne, SplitRule::kReplicated, true, HasOutputNorm},
    {Role::kFeedForwardNorm, "blk.*.ffn_norm.weight",
     "model.layers.*.post_attention_layernorm.weight", Place::kEveryLayer, Extent::kModelDim,
     Extent::kOne, SplitRule::kReplicated, true, HasFeedForwardNorm},
    {Role::kFeedForwardNormBias, "blk.*.ffn_norm.bias",
     "model.layers.*.post_attention_layernorm.bias", Place::kEveryLayer, Extent::kModelDim,
     Extent::kOne, SplitRule::kReplicated, false, HasFeedForwardNormBias},
    {Role::kGate, "blk.*.ffn_gate.weight", "model.layers.*.mlp.gate_proj.weight",
     Place::kEveryLayer, Extent::kHiddenDim, Extent::kModelDim, SplitRule::kHiddenRows, false,
     HasGate},
    {Role::kUp, "blk.*.ffn_up.weight", "model.layers.*.mlp.up_proj.weight", Place::kEveryLayer,
     Extent::kHiddenDim, Extent::kModelDim, SplitRule::kHiddenRows, false, HasDense},
    {Role::kHiddenNorm, "blk.*.ffn_sub_norm.weight", "model.layers.*.mlp.ffn_sub_norm.weight",
     Place::kEveryLayer, Extent::kHiddenDim, Extent::kOne, SplitRule::kHiddenRows, true,
     HasHiddenNorm},
    {Role::kDown, "blk.*.ffn_down.weight", "model.layers.*.mlp.down_proj.weight",
     Place::kEveryLayer, Extent::kModelDim, Extent::kHiddenDim, SplitRule::kHiddenColumns, false,
     HasDense},
    {Role::kGateBias, "blk.*.ffn_gate.bias", "model.layers.*.mlp.gate_proj.bias",
     Place::kEveryLayer, Extent::kHiddenDim, Extent::kOne, SplitRule::kHiddenRows, false,
     HasGateBias},
    {Role::kUpBias, "blk.*.ffn_up.bias", "model.layers.*.mlp.up_proj.bias", Place::kEveryLayer,
     Extent::kHiddenDim, Extent::kOne, SplitRule::kHiddenRows, false, HasUpBias},
    {Role::kDownBias, "blk.*.ffn_down.bias", "model.layers.*.mlp.down_proj.bias",
     Place::kEveryLayer, Extent::kModelDim, Extent::kOne, SplitRule::kReplicated, false,
     HasDownBias},
    {Role::kRouter, "blk.*.ffn_gate_inp.weight", "model.layers.*.mlp.gate.weight",
     Place::kEveryLayer, Extent::kExperts, Extent::kModelDim, SplitRule::kReplicated, false,
     HasExperts},
    {Role::kRouterBias, "blk.*.ffn_gate_inp.bias", "model.layers.*.mlp.router.bias",
     Place::kEveryLayer, Extent::kExperts, Extent::kOne, SplitRule::kReplicated, false,
     HasRouterBias},
    {Role::kCorrectionBias, "blk.*.exp_probs_b.bias",
     "model.layers.*.mlp.gate.e_score_correction_bias", Place::kEveryLayer, Extent::kExperts,
     Extent::kOne, SplitRule::kReplicated, false, HasCorrectionBias},
    {Role::kExpertGate, "blk.*.ffn_gate_exps.weight",
     "model.layers.*.mlp.experts.#.gate_proj.weight", Place::kEveryExpert, Extent::kExpertDim,
     Extent::kModelDim, SplitRule::kExpertRows, false, HasExperts},
    {Role::kExpertUp, "blk.*.ffn_up_exps.weight", "model.layers.*.mlp.experts.#.up_proj.weight",
     Place::kEveryExpert, Extent::kExpertDim, Extent::kModelDim, SplitRule::kExpertRows, false,
     HasExperts},
    {Role::kExpertDown, "blk.*.ffn_down_exps.weight",
     "model.layers.*.mlp.experts.#.down_proj.weight", Place::kEveryExpert, Extent::kModelDim,
     Extent::kExpertDim, SplitRule::kExpertColumns, false, HasExperts},
    {Role::kExpertGateBias, "blk.*.ffn_gate_exps.bias",
     "model.layers.*.mlp.experts.gate_up_proj_bias", Place::kEveryExpert, Extent::kExpertDim,
     Extent::kOne, SplitRule::kExpertRows, false, HasExpertBias},
    {Role::kExpertUpBias, "blk.*.ffn_up_exps.bias", "model.layers.*.mlp.experts.gate_up_proj_bias",
     Place::kEveryExpert, Extent::kExpertDim, Extent::kOne, SplitRule::kExpertRows, false,
     HasExpertBias},
    {Role::kExpertDownBias, "blk.*.ffn_down_exps.bias", "model.layers.*.mlp.experts.down_proj_bias",
     Place::kEveryExpert, Extent::kModelDim, Extent::kOne, SplitRule::kReplicated, false,
     HasExpertBias},
    {Role::kSharedRouter, "blk.*.ffn_gate_inp_shexp.weight",
     "model.layers.*.mlp.shared_expert_gate.weight", Place::kEveryLayer, Extent::kModelDim,
     Extent::kOne, SplitRule::kReplicated, false, HasSharedRouter},
    {Role::kSharedGate, "blk.*.ffn_gate_shexp.weight",
     "model.layers.*.mlp.shared_experts.gate_proj.weight", Place::kEveryLayer, Extent::kSharedDim,
     Extent::kModelDim, SplitRule::kSharedRows, false, HasShared},
    {Role::kSharedUp, "blk.*.ffn_up_shexp.weight",
     "model.layers.*.mlp.shared_experts.up_proj.weight", Place::kEveryLayer, Extent::kSharedDim,
     Extent::kModelDim, SplitRule::kSharedRows, false, HasShared},
    {Role::kSharedDown, "blk.*.ffn_down_shexp.weight",
     "model.layers.*.mlp.shared_experts.down_proj.weight", Place::kEveryLayer, Extent::kModelDim,
     Extent::kSharedDim, SplitRule::kSharedColumns, false, HasShared},
    {Role::kPostFeedForwardNorm, "blk.*.post_ffw_norm.weight",
     "model.layers.*.post_feedforward_layernorm.weight", Place::kEveryLayer, Extent::kModelDim,
     Extent::kOne, SplitRule::kReplicated, true, HasOutputNorm},
};

static_assert(
    [] {
      for (int i = 0; i < kRoleCount; ++i) {
        if (static_cast<int>(kRoles[i].role) != i) {
          return false;
        }
      }
      return true;
    }(),
    "kRoles is indexed by the enumeration");

// Of a model without this part, 0: no role that is used asks.
const LatentSpec& LatentOf(const LayerSpec& layer) {
  CHECK(layer.attention.latent.has_value());
  return *layer.attention.latent;
}
const ExpertsSpec& ExpertsOf(const LayerSpec& layer) {
  CHECK(layer.feed_forward.experts.has_value());
  return *layer.feed_forward.experts;
}

// Queries of the plain projection; those of latent attention have both parts of a head.
int64_t QueryDim(const AttentionSpec& attention) {
  const int64_t width = attention.latent.has_value()
                            ? attention.latent->unrotated_dim + attention.latent->rotated_dim
                            : attention.head_dim;
  return attention.query_heads * width;
}

}  // namespace

absl::Span<const TensorRole> TensorRoles() { return kRoles; }

const TensorRole& RoleOf(Role role) { return kRoles[static_cast<int>(role)]; }

TensorSources DefaultSources(Container container) {
  TensorSources sources;
  for (const TensorRole& role : kRoles) {
    sources[static_cast<size_t>(role.role)].name =
        container == Container::kGguf ? role.gguf_name : role.hugging_face_name;
  }
  return sources;
}

std::string TensorName(const TensorSource& source, int64_t layer, int64_t index) {
  return absl::StrReplaceAll(source.name, {{"*", absl::StrCat(layer)}, {"#", absl::StrCat(index)}});
}

int64_t ExtentOf(Extent extent, const ModelSpec& model, const LayerSpec& layer) {
  const AttentionSpec& attention = layer.attention;
  const bool all_heads = attention.query_key_norm == QueryKeyNorm::kAllHeads;
  switch (extent) {
    case Extent::kOne:
      return 1;
    case Extent::kModelDim:
      return model.model_dim;
    case Extent::kVocabulary:
      return model.vocabulary;
    case Extent::kHeadDim:
      return attention.head_dim;
    case Extent::kQueryHeads:
      return attention.query_heads;
    case Extent::kQueryDim:
      return QueryDim(attention);
    case Extent::kKeyValueDim:
      return attention.key_value_heads * attention.head_dim;
    case Extent::kQueryNormDim:
      return all_heads ? QueryDim(attention) : attention.head_dim;
    case Extent::kKeyNormDim:
      return all_heads ? attention.key_value_heads * attention.head_dim : attention.head_dim;
    case Extent::kAttendedDim:
      return attention.query_heads * attention.output_dim();
    case Extent::kHiddenDim:
      return layer.feed_forward.hidden_dim;
    case Extent::kExperts:
      return ExpertsOf(layer).count;
    case Extent::kExpertDim:
      return ExpertsOf(layer).hidden_dim;
    case Extent::kSharedDim:
      return ExpertsOf(layer).shared_dim;
    case Extent::kQueryRank:
      return LatentOf(layer).query_rank;
    case Extent::kLatentQueryDim:
      return QueryDim(attention);
    case Extent::kLatentKeyDim:
      return LatentOf(layer).latent_dim + LatentOf(layer).rotated_dim;
    case Extent::kLatentDim:
      return LatentOf(layer).latent_dim;
    case Extent::kUnrotatedDim:
      return LatentOf(layer).unrotated_dim;
    case Extent::kValueDim:
      return LatentOf(layer).value_dim;
  }
  CHECK(false);
}

int64_t CountOf(Place place, const LayerSpec& layer) {
  switch (place) {
    case Place::kFirstStage:
    case Place::kLastStage:
    case Place::kEveryLayer:
      return 1;
    case Place::kEveryExpert:
      return layer.feed_forward.experts.has_value() ? layer.feed_forward.experts->count : 0;
    case Place::kEveryHead:
      return layer.attention.query_heads;
  }
  CHECK(false);
}

std::vector<int64_t> StoredExtents(const TensorRole& role, const ModelSpec& model,
                                   const LayerSpec& layer) {
  const TensorSource& source = model.source(role.role);
  if (!source.extents.empty()) {
    return source.extents;
  }
  std::vector<int64_t> extents;
  const bool is_stacked = role.place == Place::kEveryExpert || role.place == Place::kEveryHead;
  if (is_stacked && source.name.find('#') == std::string::npos) {
    extents.push_back(CountOf(role.place, layer));
  }
  extents.push_back(ExtentOf(role.rows, model, layer));
  if (role.columns != Extent::kOne) {
    extents.push_back(ExtentOf(role.columns, model, layer));
  }
  return extents;
}

}  // namespace trireme::spec
