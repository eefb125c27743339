// The pre-tokenizers that published models use, as data: names, regular expressions and what else a
// name implies. A new family is one entry in the table of the .cc file.
#ifndef TRIREME_RUNTIME_TEXT_PRE_TOKENIZER_FAMILIES_H_
#define TRIREME_RUNTIME_TEXT_PRE_TOKENIZER_FAMILIES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace trireme::text {

// What a name implies besides the expressions.
struct PreTokenizerTraits {
  bool ignore_merges = false;  // a word that is a token as a whole is that token, merges or not
  bool adds_bos = false;       // the default where the file does not say
};

struct PreTokenizerFamily {
  std::vector<absl::string_view> names;
  // As published (character_pattern.h); each is applied to all pieces that the one before left.
  std::vector<std::string> patterns;
  PreTokenizerTraits traits;
};

// The family of `name`, the value of tokenizer.ggml.pre; empty (missing in the file) means
// "default", with a warning in the log. Errors: InvalidArgument for an unknown name, Unimplemented
// for one known but not built.
absl::StatusOr<PreTokenizerFamily> FindPreTokenizerFamily(absl::string_view name);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_PRE_TOKENIZER_FAMILIES_H_
