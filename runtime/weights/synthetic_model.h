// Models of random weights: the shapes of published models without a download, for measuring. Any
// engine that reads GGUF can open them; what they say has no meaning.
#ifndef TRIREME_RUNTIME_WEIGHTS_SYNTHETIC_MODEL_H_
#define TRIREME_RUNTIME_WEIGHTS_SYNTHETIC_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/formats/weight_format.h"

namespace trireme::weights {

// As the metadata keys of GGUF say it, with the same words.
struct SyntheticShape {
  const char* name;
  const char* architecture;  // "llama", "qwen3moe"
  int64_t layers;
  int64_t model_dim;
  int64_t query_heads;
  int64_t key_value_heads;
  int64_t head_dim;
  int64_t hidden_dim;  // of the feed-forward layer; of each expert when there are experts
  int64_t vocabulary;
  int64_t context;
  float rope_base;
  bool is_tied;  // the output matrix is the embedding
  bool has_head_norms = false;
  int64_t experts = 0;
  int64_t experts_used = 0;
};

absl::Span<const SyntheticShape> SyntheticShapes();

// InvalidArgument naming the shapes there are.
absl::StatusOr<SyntheticShape> FindSyntheticShape(absl::string_view name);

struct SyntheticModel {
  SyntheticShape shape;
  kernels::WeightFormat format;  // of all matrices; norms and routers are F32
  uint64_t seed = 0;             // equal seeds give equal files
};

// Bytes of the weights in the file. InvalidArgument when a row is not a whole number of the
// format's blocks.
absl::StatusOr<int64_t> SyntheticBytes(const SyntheticModel& model);

// Errors of the file system as GgufWriter; InvalidArgument as SyntheticBytes.
absl::Status WriteSyntheticModel(const SyntheticModel& model, const std::string& path);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_SYNTHETIC_MODEL_H_
