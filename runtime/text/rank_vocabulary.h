// The published vocabularies that come as rank files (rank_file.h). Such a file says neither how a
// text is cut nor which tokens are special; its number of ranks tells which vocabulary it is, and
// tokenizer_config.json beside it may name the special tokens.
#ifndef TRIREME_RUNTIME_TEXT_RANK_VOCABULARY_H_
#define TRIREME_RUNTIME_TEXT_RANK_VOCABULARY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/text/tokenizer_settings.h"
#include "runtime/text/vocabulary.h"

namespace trireme::text {

struct RankFamily {
  absl::string_view name;
  size_t ranks = 0;
  absl::string_view pre_tokenizer;  // a name of pre_tokenizer_families.h
  absl::string_view bos_text;       // empty: none
  absl::string_view eos_text;
  bool adds_bos = false;
  std::vector<std::string> special_tokens;  // their ids follow the ranks
};

// Errors: InvalidArgument when no published vocabulary has so many ranks.
absl::StatusOr<RankFamily> FindRankFamily(size_t ranks);

// The vocabulary of `tokens` (their bytes, [rank]) with the special tokens of `settings`, or else
// those of `family`. Errors: InvalidArgument for added tokens whose ids are among the ranks, far
// beyond them, or there twice.
absl::StatusOr<VocabularyData> MakeRankVocabulary(const std::vector<std::string>& tokens,
                                                  const RankFamily& family,
                                                  const TokenizerSettings& settings);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_RANK_VOCABULARY_H_
