// Families whose every layer has one feed-forward: one function each, from keys to a ModelSpec.
// Sources: specs of the published configurations and of transformers' and llama.cpp's models, as
// docs/adding_a_family.md lists them.
#ifndef TRIREME_RUNTIME_SPEC_DENSE_FAMILIES_H_
#define TRIREME_RUNTIME_SPEC_DENSE_FAMILIES_H_

#include "absl/status/statusor.h"
#include "runtime/spec/family_parts.h"
#include "runtime/spec/model_spec.h"

namespace trireme::spec {

absl::StatusOr<ModelSpec> LlamaSpec(const FamilySource& source);  // Mistral and Mixtral too
absl::StatusOr<ModelSpec> Qwen2Spec(const FamilySource& source);
absl::StatusOr<ModelSpec> Qwen3Spec(const FamilySource& source);
absl::StatusOr<ModelSpec> Phi3Spec(const FamilySource& source);
absl::StatusOr<ModelSpec> Gemma2Spec(const FamilySource& source);
absl::StatusOr<ModelSpec> Gemma3Spec(const FamilySource& source);
absl::StatusOr<ModelSpec> SmolLm3Spec(const FamilySource& source);
absl::StatusOr<ModelSpec> Olmo2Spec(const FamilySource& source);  // OLMo 3 too
absl::StatusOr<ModelSpec> Exaone4Spec(const FamilySource& source);
absl::StatusOr<ModelSpec> Glm4Spec(const FamilySource& source);
absl::StatusOr<ModelSpec> GraniteSpec(const FamilySource& source);
absl::StatusOr<ModelSpec> Ernie45Spec(const FamilySource& source);
absl::StatusOr<ModelSpec> StarCoder2Spec(const FamilySource& source);
absl::StatusOr<ModelSpec> Cohere2Spec(const FamilySource& source);
absl::StatusOr<ModelSpec> BitNetSpec(const FamilySource& source);
absl::StatusOr<ModelSpec> NemotronSpec(const FamilySource& source);
absl::StatusOr<ModelSpec> ArceeSpec(const FamilySource& source);
absl::StatusOr<ModelSpec> SeedOssSpec(const FamilySource& source);

// Windows of the Qwen families: only where the configuration switches them on.
absl::Status AddQwenWindows(const FamilySource& source, ModelSpec* model);

}  // namespace trireme::spec

#endif  // TRIREME_RUNTIME_SPEC_DENSE_FAMILIES_H_
