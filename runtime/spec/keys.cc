#include "runtime/spec/keys.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace trireme::spec {
namespace {

struct KeyNames {
  absl::string_view key;           // GGUF's, without the architecture
  absl::string_view hugging_face;  // config.json's, the preferred one first, between spaces
};

// A key that is not here has no name in config.json.
constexpr KeyNames kKeyNames[] = {
    {"block_count", "num_hidden_layers"},
    {"embedding_length", "hidden_size"},
    {"context_length", "max_position_embeddings"},
    {"feed_forward_length", "intermediate_size"},
    {"vocab_size", "vocab_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps norm_eps layer_norm_eps norm_epsilon"},
    {"attention.layer_norm_epsilon", "norm_epsilon norm_eps layer_norm_eps"},
    {"attention.scale", "attention_multiplier"},
    {"attention.query_scale", "query_pre_attn_scalar"},
    {"attention.sliding_window", "sliding_window"},
    {"attention.sliding_window_pattern", "sliding_window_pattern"},
    {"attention.use_window", "use_sliding_window"},
    {"attention.window_layers", "max_window_layers"},
    {"attention.layer_types", "layer_types"},
    {"attention.rope_layers", "no_rope_layers"},
    {"attention.rope_interval", "no_rope_layer_interval"},
    {"attention.bias", "attention_bias use_bias"},
    {"attention.query_key_norm", "use_qk_norm"},
    {"attention.q_lora_rank", "q_lora_rank"},
    {"attention.kv_lora_rank", "kv_lora_rank"},
    {"attention.unrotated_length", "qk_nope_head_dim"},
    {"attention.value_length_mla", "v_head_dim"},
    {"attention.clamp_kqv", "clip_qkv"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
    {"hidden_activation", "hidden_activation hidden_act"},
    {"feed_forward_bias", "mlp_bias use_bias"},
    {"tie_embeddings", "tie_word_embeddings"},
    {"embedding_scale", "embedding_multiplier"},
    {"residual_scale", "residual_multiplier"},
    {"logit_scale", "logit_scale logits_scaling"},
    {"rope.dimension_count", "qk_rope_head_dim rotary_dim"},
    {"rope.partial_factor", "partial_rotary_factor rope_parameters.partial_rotary_factor"},
    {"rope.freq_base", "rope_theta rope_parameters.rope_theta"},
    {"rope.freq_base_swa", "rope_local_base_freq rope_parameters.sliding_attention.rope_theta"},
    {"rope.scaling.type", "rope_scaling.rope_type rope_scaling.type rope_parameters.rope_type"},
    {"rope.scaling.factor", "rope_scaling.factor rope_parameters.factor"},
    {"rope.scaling.original_context_length",
     "rope_scaling.original_max_position_embeddings "
     "rope_parameters.original_max_position_embeddings original_max_position_embeddings "
     "initial_context_length"},
    {"rope.scaling.yarn_beta_fast", "rope_scaling.beta_fast rope_parameters.beta_fast"},
    {"rope.scaling.yarn_beta_slow", "rope_scaling.beta_slow rope_parameters.beta_slow"},
    {"rope.scaling.attn_factor", "rope_scaling.attention_factor rope_parameters.attention_factor"},
    {"rope.scaling.mscale", "rope_scaling.mscale rope_parameters.mscale"},
    {"rope.scaling.mscale_all_dim", "rope_scaling.mscale_all_dim rope_parameters.mscale_all_dim"},
    {"rope.scaling.truncate", "rope_scaling.truncate rope_parameters.truncate"},
    {"rope.scaling.low_freq_factor",
     "rope_scaling.low_freq_factor rope_parameters.low_freq_factor"},
    {"rope.scaling.high_freq_factor",
     "rope_scaling.high_freq_factor rope_parameters.high_freq_factor"},
    {"rope.scaling.short_factor", "rope_scaling.short_factor rope_parameters.short_factor"},
    {"rope.scaling.long_factor", "rope_scaling.long_factor rope_parameters.long_factor"},
    {"expert_count", "num_local_experts num_experts n_routed_experts"},
    {"expert_used_count", "num_experts_per_tok experts_per_token"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"expert_group_count", "n_group"},
    {"expert_group_used_count", "topk_group"},
    {"expert_group_method", "topk_method"},
    {"expert_weights_scale", "routed_scaling_factor"},
    {"expert_weights_norm", "norm_topk_prob"},
    {"expert_dense_layers", "mlp_only_layers"},
    {"expert_sparse_step", "decoder_sparse_step"},
    {"expert_layer_step", "moe_layer_freq"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"swiglu_limit", "swiglu_limit"},
    {"swiglu_alpha", "swiglu_alpha"},
};

}  // namespace

std::string Keys::Name(absl::string_view key) const {
  if (is_gguf()) {
    return absl::StrCat(architecture_, ".", key);
  }
  for (const KeyNames& names : kKeyNames) {
    if (names.key != key) {
      continue;
    }
    const std::vector<absl::string_view> alternatives = absl::StrSplit(names.hugging_face, ' ');
    for (const absl::string_view name : alternatives) {
      if (metadata_.Has(name)) {
        return std::string(name);
      }
      // Newer files have a rope for each kind of layer.
      absl::string_view rest = name;
      if (absl::ConsumePrefix(&rest, "rope_parameters.")) {
        std::string nested = absl::StrCat("rope_parameters.full_attention.", rest);
        if (metadata_.Has(nested)) {
          return nested;
        }
      }
    }
    return std::string(alternatives[0]);
  }
  return absl::StrCat("gguf:", key);  // no key of config.json
}

absl::StatusOr<int64_t> Keys::Checked(absl::string_view key, int64_t value, int64_t minimum,
                                      int64_t maximum) const {
  if (value < minimum || value > maximum) {
    return Error(key,
                 absl::StrFormat("is %d; it must be between %d and %d", value, minimum, maximum));
  }
  return value;
}

absl::StatusOr<int64_t> Keys::Extent(absl::string_view key, int64_t maximum) const {
  ASSIGN_OR_RETURN(const int64_t value, metadata_.Integer(Name(key)));
  return Checked(key, value, 1, maximum);
}

absl::StatusOr<int64_t> Keys::ExtentOr(absl::string_view key, int64_t maximum,
                                       int64_t fallback) const {
  return Has(key) ? Extent(key, maximum) : absl::StatusOr<int64_t>(fallback);
}

absl::StatusOr<int64_t> Keys::Count(absl::string_view key, int64_t maximum) const {
  if (!Has(key)) {
    return 0;
  }
  ASSIGN_OR_RETURN(const int64_t value, metadata_.Integer(Name(key)));
  return Checked(key, value, 0, maximum);
}

absl::StatusOr<std::vector<int64_t>> Keys::PerLayer(absl::string_view key, int64_t layers,
                                                    int64_t maximum) const {
  ASSIGN_OR_RETURN(std::vector<int64_t> values, metadata_.Integers(Name(key)));
  if (values.size() == 1 && layers > 1 && !metadata_.ArrayLength(Name(key)).ok()) {
    values.assign(layers, values[0]);
  }
  if (static_cast<int64_t>(values.size()) != layers) {
    return Error(key, absl::StrFormat("is an array of %d entries; the model has %d layers",
                                      values.size(), layers));
  }
  for (const int64_t value : values) {
    RETURN_IF_ERROR(Checked(key, value, 1, maximum).status());
  }
  return values;
}

absl::StatusOr<int64_t> Keys::Uniform(absl::string_view key, int64_t layers,
                                      int64_t maximum) const {
  ASSIGN_OR_RETURN(const std::vector<int64_t> values, PerLayer(key, layers, maximum));
  for (const int64_t value : values) {
    if (value != values[0]) {
      return Error(key,
                   absl::StrFormat("differs between layers (%d and %d); this build needs one value",
                                   values[0], value));
    }
  }
  return values[0];
}

absl::StatusOr<double> Keys::Positive(absl::string_view key, std::optional<double> fallback) const {
  if (fallback.has_value() && !Has(key)) {
    return *fallback;
  }
  ASSIGN_OR_RETURN(const double value, metadata_.Float(Name(key)));
  if (!std::isfinite(value) || value <= 0) {
    return Error(key, absl::StrFormat("is %g; it must be a finite number above 0", value));
  }
  return value;
}

absl::StatusOr<bool> Keys::Flag(absl::string_view key, bool fallback) const {
  return Has(key) ? metadata_.Bool(Name(key)) : absl::StatusOr<bool>(fallback);
}

absl::StatusOr<std::string> Keys::Text(absl::string_view key, absl::string_view fallback) const {
  return Has(key) ? metadata_.String(Name(key))
                  : absl::StatusOr<std::string>(std::string(fallback));
}

}  // namespace trireme::spec
