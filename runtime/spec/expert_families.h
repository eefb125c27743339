// Families with mixtures of experts, and those with latent attention: one function each.
#ifndef TRIREME_RUNTIME_SPEC_EXPERT_FAMILIES_H_
#define TRIREME_RUNTIME_SPEC_EXPERT_FAMILIES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/spec/family_parts.h"
#include "runtime/spec/model_spec.h"

namespace trireme::spec {

// Mixtral is a Llama with experts, and its GGUF files say so: added to what LlamaSpec made.
absl::Status AddMixtralExperts(const FamilySource& source, ModelSpec* model);

absl::StatusOr<ModelSpec> Qwen2MoeSpec(const FamilySource& source);
absl::StatusOr<ModelSpec> Qwen3MoeSpec(const FamilySource& source);
absl::StatusOr<ModelSpec> OlmoeSpec(const FamilySource& source);
absl::StatusOr<ModelSpec> MiniMaxM2Spec(const FamilySource& source);
absl::StatusOr<ModelSpec> Glm4MoeSpec(const FamilySource& source);
absl::StatusOr<ModelSpec> GptOssSpec(const FamilySource& source);
absl::StatusOr<ModelSpec> DeepSeekSpec(const FamilySource& source);  // V2, V3, Kimi K2

}  // namespace trireme::spec

#endif  // TRIREME_RUNTIME_SPEC_EXPERT_FAMILIES_H_
