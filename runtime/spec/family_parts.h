// What family functions are made of: the parts that most architectures share, each reading its keys
// and filling its fields. Errors are those of Metadata: they name the file and the key.
#ifndef TRIREME_RUNTIME_SPEC_FAMILY_PARTS_H_
#define TRIREME_RUNTIME_SPEC_FAMILY_PARTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/spec/keys.h"
#include "runtime/spec/model_spec.h"
#include "runtime/spec/read_rope.h"

namespace trireme::spec {

// What config.json leaves out where it is the architecture's default.
struct FamilyDefaults {
  double norm_epsilon = 1e-6;
  double rope_base = 10000;
  bool ties_output = false;
};

struct FamilySource {
  const char* family;
  const Keys& keys;
  FamilyDefaults defaults;

  bool is_gguf() const { return keys.is_gguf(); }
};

// Which dimensions are rotated together, in each container.
struct RopeLayout {
  RopePairing gguf = RopePairing::kHalfSplit;
  RopePairing hugging_face = RopePairing::kHalfSplit;
};
inline constexpr RopeLayout kHalfSplitRope = {};
// The converter permutes the rows of queries and keys.
inline constexpr RopeLayout kPermutedRope = {RopePairing::kInterleaved, RopePairing::kHalfSplit};
inline constexpr RopeLayout kInterleavedRope = {RopePairing::kInterleaved,
                                                RopePairing::kInterleaved};

// Extents, epsilon, vocabulary, the layers without their parts, and the default tensor names.
absl::StatusOr<ModelSpec> BeginSpec(const FamilySource& source, NormKind norm = NormKind::kRms);

// Grouped-query attention into every layer.
absl::Status AddAttention(const FamilySource& source, ModelSpec* model);

// Queries and keys are normed in every layer.
void SetQueryKeyNorm(QueryKeyNorm norm, ModelSpec* model);

// One rope for every layer.
absl::Status AddRope(const FamilySource& source, RopeLayout layout, ModelSpec* model);
RopeQuestion QuestionOf(const FamilySource& source, RopeLayout layout, const ModelSpec& model);

// A gated SiLU feed-forward into every layer.
absl::Status AddFeedForward(const FamilySource& source, ModelSpec* model);

// All of the above, and biases where the checkpoint has them: Llama.
absl::StatusOr<ModelSpec> LlamaLike(const FamilySource& source, RopeLayout layout,
                                    NormKind norm = NormKind::kRms);

// Biases that the configuration asks for or the checkpoint holds. After the names are final.
void FindBiases(const FamilySource& source, ModelSpec* model);

// Which layers are windowed: layer_types, else the pattern, else all but each `period`-th (0: all).
absl::StatusOr<std::vector<bool>> WindowedLayers(const FamilySource& source, int64_t layers,
                                                 int64_t period);
// Sets the window of these layers where the checkpoint has one.
absl::Status AddWindows(const FamilySource& source, int64_t period, ModelSpec* model);

// `gguf` and `hugging_face` as in TensorSource::name.
void Rename(const FamilySource& source, Role role, const char* gguf, const char* hugging_face,
            ModelSpec* model);
bool IsStored(const FamilySource& source, const ModelSpec& model, Role role);

// One matrix that holds queries, keys and values, or gate and up, one after another.
void FuseQueryKeyValue(const FamilySource& source, ModelSpec* model);
void FuseGateUp(const char* gguf, const char* hugging_face, const FamilySource& source,
                ModelSpec* model);

// The activation that config.json names.
absl::Status ReadActivation(const FamilySource& source, kernels::Activation fallback,
                            ModelSpec* model);

void ForEachLayer(ModelSpec* model, const std::function<void(int64_t, LayerSpec&)>& change);

}  // namespace trireme::spec

#endif  // TRIREME_RUNTIME_SPEC_FAMILY_PARTS_H_
