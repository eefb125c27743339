#include "runtime/engine/replica.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model_text.h"
#include "runtime/sample/sampling_options.h"
#include "runtime/weights/generation_defaults.h"

namespace trireme::engine {
namespace {

// From generation_config.json or the keys general.sampling.*. A repetition penalty is not applied.
absl::StatusOr<sample::SamplingOptions> DefaultSamplingOf(const weights::Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const weights::GenerationDefaults defaults,
                   weights::ReadGenerationDefaults(checkpoint));
  sample::SamplingOptions options = {.temperature = 1.0F};
  for (const weights::GenerationDefault& given : defaults.sampling) {
    if (given.name == "temperature") {
      options.temperature = static_cast<float>(given.value);
    } else if (given.name == "top_k") {
      options.top_k = static_cast<int32_t>(std::clamp(given.value, 0.0, double{INT32_MAX}));
    } else if (given.name == "top_p") {
      options.top_p = static_cast<float>(given.value);
    } else if (given.name == "min_p") {
      options.min_p = static_cast<float>(given.value);
    } else {
      continue;
    }
    if (absl::Status status = sample::ValidateSamplingOptions(options); !status.ok()) {
      return absl::DataLossError(absl::StrCat(checkpoint.name(), ": ", given.source, " is ",
                                              given.value, ": ", status.message()));
    }
  }
  return options;
}

absl::StatusOr<ModelText> ReadTextAlone(const weights::Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) {
    absl::StatusOr<ModelText> text = ReadModelText(*checkpoint.gguf());
    return text.ok() ? std::move(text) : absl::DataLossError(text.status().message());
  }
  absl::StatusOr<ModelText> text = OpenModelText(TextFolderOf(checkpoint));
  if (absl::IsNotFound(text.status())) {
    return ModelText{.chat_template_status = absl::NotFoundError(
                         absl::StrCat(checkpoint.name(),
                                      ": there is no tokenizer.json, no tokenizer.model and no "
                                      "rank file beside the weights, so there is no chat "
                                      "template"))};
  }
  if (!text.ok()) {
    return text.status();
  }
  // The embedding may have rows that no token uses, but not the other way round. There is no
  // tokenizer where all that lies beside the weights is a GGUF file of a model that speaks in ids.
  if (text->tokenizer != nullptr &&
      text->tokenizer->vocabulary_size() > checkpoint.model_spec().vocabulary) {
    return absl::DataLossError(absl::StrFormat(
        "%s: the tokenizer beside the weights has %d tokens; the model has %d", checkpoint.name(),
        text->tokenizer->vocabulary_size(), checkpoint.model_spec().vocabulary));
  }
  return text;
}

}  // namespace

absl::string_view RankPhaseName(RankPhase phase) {
  switch (phase) {
    case RankPhase::kIdle:
      return "idle";
    case RankPhase::kComputing:
      return "computing";
    case RankPhase::kWaiting:
      return "waiting";
    case RankPhase::kSilent:
      return "silent";
    case RankPhase::kGone:
      return "gone";
  }
  return "";
}

// Models are named by their folder or by a file in it.
std::string TextFolderOf(const weights::Checkpoint& checkpoint) {
  const std::string& path = checkpoint.name();
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return path;
  }
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

absl::StatusOr<ModelText> ReadReplicaText(const weights::Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(ModelText text, ReadTextAlone(checkpoint));
  ASSIGN_OR_RETURN(text.default_sampling, DefaultSamplingOf(checkpoint));
  return text;
}

}  // namespace trireme::engine
