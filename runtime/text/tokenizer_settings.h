// What other files than the tokenizer's own say about it (tokenizer_config.json,
// generation_config.json).
#ifndef TRIREME_RUNTIME_TEXT_TOKENIZER_SETTINGS_H_
#define TRIREME_RUNTIME_TEXT_TOKENIZER_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trireme::text {

// An entry of added_tokens_decoder.
struct NamedTokenId {
  int64_t id = 0;
  std::string text;
  bool is_special = false;
};

struct TokenizerSettings {
  std::string bos_text;  // spellings; empty: not named
  std::string eos_text;
  std::vector<int64_t> end_of_generation_ids;
  // For a tokenizer.model or a rank file, which do not say it; absent: as is usual for the file.
  std::optional<bool> add_bos;
  std::vector<NamedTokenId> added_tokens;  // for a rank file, which has none
  std::string chat_template;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_TOKENIZER_SETTINGS_H_
