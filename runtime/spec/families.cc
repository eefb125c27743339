#include "runtime/spec/families.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "runtime/base/status_macros.h"
#include "runtime/spec/dense_families.h"
#include "runtime/spec/expert_families.h"
#include "runtime/spec/family_parts.h"
#include "runtime/spec/keys.h"
#include "runtime/spec/metadata.h"
#include "runtime/spec/model_spec.h"

namespace trireme::spec {
namespace {

struct Family {
  const char* name;
  const char* architecture;  // general.architecture of GGUF files; null: none
  const char* model_type;    // of config.json; null: none
  FamilyDefaults defaults;   // norm_epsilon, rope_base, ties_output
  absl::StatusOr<ModelSpec> (*spec)(const FamilySource& source);
};

constexpr Family kFamilies[] = {
    {"llama", "llama", "llama", {1e-6, 1e4, false}, LlamaSpec},
    {"mistral", nullptr, "mistral", {1e-6, 1e4, false}, LlamaSpec},
    {"mixtral", nullptr, "mixtral", {1e-5, 1e6, false}, LlamaSpec},
    {"qwen2", "qwen2", "qwen2", {1e-6, 1e4, false}, Qwen2Spec},
    {"qwen3", "qwen3", "qwen3", {1e-6, 1e4, false}, Qwen3Spec},
    {"phi3", "phi3", "phi3", {1e-5, 1e4, false}, Phi3Spec},
    {"gemma2", "gemma2", "gemma2", {1e-6, 1e4, true}, Gemma2Spec},
    {"gemma3", "gemma3", "gemma3_text", {1e-6, 1e6, true}, Gemma3Spec},
    {"smollm3", "smollm3", "smollm3", {1e-6, 2e6, true}, SmolLm3Spec},
    {"olmo2", "olmo2", "olmo2", {1e-5, 1e4, false}, Olmo2Spec},
    {"olmo3", nullptr, "olmo3", {1e-6, 5e5, false}, Olmo2Spec},
    {"exaone4", "exaone4", "exaone4", {1e-5, 1e4, false}, Exaone4Spec},
    {"glm4", "glm4", "glm4", {1.5625e-7, 1e4, false}, Glm4Spec},
    {"granite", "granite", "granite", {1e-6, 1e4, false}, GraniteSpec},
    {"ernie4_5", "ernie4_5", "ernie4_5", {1e-5, 5e5, true}, Ernie45Spec},
    {"starcoder2", "starcoder2", "starcoder2", {1e-5, 1e4, true}, StarCoder2Spec},
    {"cohere2", "cohere2", "cohere2", {1e-5, 1e4, true}, Cohere2Spec},
    {"bitnet", "bitnet", "bitnet", {1e-5, 5e5, false}, BitNetSpec},
    {"nemotron", "nemotron", "nemotron", {1e-5, 1e4, false}, NemotronSpec},
    {"arcee", "arcee", "arcee", {1e-5, 1e4, false}, ArceeSpec},
    {"seed_oss", "seed_oss", "seed_oss", {1e-6, 1e4, false}, SeedOssSpec},
    {"qwen2_moe", "qwen2moe", "qwen2_moe", {1e-6, 1e4, false}, Qwen2MoeSpec},
    {"qwen3_moe", "qwen3moe", "qwen3_moe", {1e-6, 1e4, false}, Qwen3MoeSpec},
    {"olmoe", "olmoe", "olmoe", {1e-5, 1e4, false}, OlmoeSpec},
    {"minimax_m2", "minimax-m2", "minimax_m2", {1e-6, 5e6, false}, MiniMaxM2Spec},
    {"glm4_moe", "glm4moe", "glm4_moe", {1e-5, 1e4, false}, Glm4MoeSpec},
    {"gpt_oss", "gpt-oss", "gpt_oss", {1e-5, 1.5e5, false}, GptOssSpec},
    {"deepseek_v2", "deepseek2", "deepseek_v2", {1e-6, 1e4, false}, DeepSeekSpec},
    {"deepseek_v3", nullptr, "deepseek_v3", {1e-6, 1e4, false}, DeepSeekSpec},
    {"deepseek_v3", nullptr, "kimi_k2", {1e-6, 1e4, false}, DeepSeekSpec},
};

const char* NameIn(const Family& family, Container container) {
  return container == Container::kGguf ? family.architecture : family.model_type;
}

}  // namespace

absl::StatusOr<ModelSpec> SpecOf(const Metadata& metadata) {
  const Container container = metadata.container();
  const bool is_gguf = container == Container::kGguf;
  const char* const key = is_gguf ? "general.architecture" : "model_type";
  ASSIGN_OR_RETURN(const std::string architecture, metadata.String(key));
  std::string known;
  for (const Family& family : kFamilies) {
    const char* const name = NameIn(family, container);
    if (name == nullptr) {
      continue;
    }
    if (architecture == name) {
      const Keys keys(metadata, architecture);
      ASSIGN_OR_RETURN(
          ModelSpec model,
          family.spec({.family = family.name, .keys = keys, .defaults = family.defaults}));
      const char* const name_key = is_gguf ? "general.name" : "_name_or_path";
      if (metadata.Has(name_key)) {
        ASSIGN_OR_RETURN(model.name, metadata.String(name_key));
      }
      return model;
    }
    absl::StrAppend(&known, known.empty() ? "" : ", ", name);
  }
  return metadata.ErrorAt(key,
                          absl::StrFormat("is \"%s\"; this build knows: %s", architecture, known));
}

}  // namespace trireme::spec
