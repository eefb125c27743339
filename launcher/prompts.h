// From the command line's prompt flags to token ids: text, a chat message, a file, or the ids
// themselves.
#ifndef TRIREME_LAUNCHER_PROMPTS_H_
#define TRIREME_LAUNCHER_PROMPTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "runtime/engine/model_text.h"

namespace trireme::launcher {

std::vector<const char*> PromptFlags();

// One of these, as the flags say.
struct PromptChoice {
  enum class Kind : uint8_t { kText, kMessages, kTokenIds, kList };
  Kind kind = Kind::kText;
  std::string text;
  nlohmann::ordered_json messages;  // kMessages: [{role, content}, ...]
  nlohmann::json list;              // kTokenIds: ids; kList: strings or id lists
};

// InvalidArgument unless exactly one prompt flag is given; NotFound and InvalidArgument about
// --prompt-file.
absl::StatusOr<PromptChoice> ReadPromptFlags();

// The conversation of --system and --chat.
nlohmann::ordered_json ChatMessages(absl::string_view system, absl::string_view user);

// Token ids of each prompt; one unless it is a list. InvalidArgument for text without a tokenizer,
// messages without a usable chat template, ids outside the vocabulary.
absl::StatusOr<std::vector<std::vector<int32_t>>> TokenizePrompts(const PromptChoice& choice,
                                                                  const engine::ModelText& text,
                                                                  int64_t vocabulary);

// What the model's chat template makes of a conversation, as token ids; user content never becomes
// control tokens.
absl::StatusOr<std::vector<int32_t>> TokenizeMessages(const nlohmann::ordered_json& messages,
                                                      const engine::ModelText& text);

// A whole file, or a pipe to its end, of at most 256 MiB; NotFound, PermissionDenied or
// InvalidArgument naming it.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// A JSON file of at most 64 levels; InvalidArgument naming file and position.
absl::StatusOr<nlohmann::ordered_json> ReadJsonFile(const std::string& path);

// [1, 2, 3] with every id in [0, vocabulary). `where` stands before the error's text.
absl::StatusOr<std::vector<int32_t>> TokenIdsOf(const nlohmann::json& list, int64_t vocabulary,
                                                absl::string_view where);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_PROMPTS_H_
