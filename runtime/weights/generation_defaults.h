// What a model's own files say about generating with it: the ids that end a turn, and how to
// sample. Each value comes with its source, for `trireme inspect`.
#ifndef TRIREME_RUNTIME_WEIGHTS_GENERATION_DEFAULTS_H_
#define TRIREME_RUNTIME_WEIGHTS_GENERATION_DEFAULTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/weights/checkpoint.h"

namespace trireme::weights {

struct GenerationDefault {
  std::string name;  // "temperature", "top_k", "top_p", "min_p", "repetition_penalty"
  double value = 0;
  std::string source;  // "generation_config.json: temperature"
};

struct EndId {
  int64_t id = 0;
  std::string source;
};

struct GenerationDefaults {
  std::vector<EndId> end_ids;  // each once, in the order of the sources
  std::vector<GenerationDefault> sampling;
};

// From generation_config.json, and config.json where that names no ids; from the keys of a GGUF
// file. Errors: InvalidArgument for a value of another type, naming file and key.
absl::StatusOr<GenerationDefaults> ReadGenerationDefaults(const Checkpoint& checkpoint);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_GENERATION_DEFAULTS_H_
