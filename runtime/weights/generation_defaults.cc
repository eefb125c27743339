#include "runtime/weights/generation_defaults.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/json_config.h"

namespace trireme::weights {
namespace {

struct SamplingKey {
  const char* name;  // and generation_config.json's
  const char* gguf;
};
constexpr SamplingKey kSamplingKeys[] = {
    {"temperature", "general.sampling.temp"},
    {"top_k", "general.sampling.top_k"},
    {"top_p", "general.sampling.top_p"},
    {"min_p", "general.sampling.min_p"},
    {"repetition_penalty", "general.sampling.penalty_repeat"},
};

void AddEndId(int64_t id, const std::string& source, GenerationDefaults* defaults) {
  const auto is_same = [id](const EndId& known) { return known.id == id; };
  if (std::none_of(defaults->end_ids.begin(), defaults->end_ids.end(), is_same)) {
    defaults->end_ids.push_back({.id = id, .source = source});
  }
}

absl::Status FromGguf(const Checkpoint& checkpoint, GenerationDefaults* defaults) {
  for (const char* name : {"eos", "eot", "eom"}) {
    const std::string key = absl::StrCat("tokenizer.ggml.", name, "_token_id");
    if (checkpoint.Has(key)) {
      ASSIGN_OR_RETURN(const int64_t id, checkpoint.Integer(key));
      AddEndId(id, key, defaults);
    }
  }
  for (const SamplingKey& key : kSamplingKeys) {
    if (checkpoint.Has(key.gguf)) {
      ASSIGN_OR_RETURN(const double value, checkpoint.Float(key.gguf));
      defaults->sampling.push_back({.name = key.name, .value = value, .source = key.gguf});
    }
  }
  return absl::OkStatus();
}

absl::Status FromHuggingFace(const Checkpoint& checkpoint, GenerationDefaults* defaults) {
  constexpr char kEnd[] = "eos_token_id";
  const JsonConfig* const generation = checkpoint.generation_config();
  if (generation != nullptr && generation->Has(kEnd)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> ids, generation->Integers(kEnd));
    for (const int64_t id : ids) {
      AddEndId(id, "generation_config.json: eos_token_id", defaults);
    }
  } else if (checkpoint.Has(kEnd)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> ids, checkpoint.Integers(kEnd));
    for (const int64_t id : ids) {
      AddEndId(id, "config.json: eos_token_id", defaults);
    }
  }
  for (const SamplingKey& key : kSamplingKeys) {
    if (generation != nullptr && generation->Has(key.name)) {
      ASSIGN_OR_RETURN(const double value, generation->Float(key.name));
      defaults->sampling.push_back({.name = key.name,
                                    .value = value,
                                    .source = absl::StrCat("generation_config.json: ", key.name)});
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GenerationDefaults> ReadGenerationDefaults(const Checkpoint& checkpoint) {
  GenerationDefaults defaults;
  RETURN_IF_ERROR(checkpoint.container() == spec::Container::kGguf
                      ? FromGguf(checkpoint, &defaults)
                      : FromHuggingFace(checkpoint, &defaults));
  return defaults;
}

}  // namespace trireme::weights
