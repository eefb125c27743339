// Token ids to text that is valid UTF-8 at every moment: a character whose bytes come in several
// tokens is held back until it is whole. Bytes that can never become a character give U+FFFD, one
// for each maximal invalid subpart, in streams and in whole texts alike. Stop strings are not its
// business.
#ifndef TRIREME_RUNTIME_TEXT_DETOKENIZER_H_
#define TRIREME_RUNTIME_TEXT_DETOKENIZER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/text/tokenizer.h"

namespace trireme::text {

enum class SpecialTokenDisplay : uint8_t {
  kShow,  // as they are spelled in the vocabulary
  kHide,  // control and unknown tokens give no text; user-defined ones do
};

enum class TextStart : uint8_t {
  kWhole,  // the ids are a text from its beginning: the space that encoding put before it goes
           // away, as the tokenizer's DecodeRules say
  kContinuation,  // the ids follow others, as generated ones follow the prompt: nothing is taken
                  // away
};

// Joins bytes into valid UTF-8 piece by piece. Not thread-safe.
class Utf8Assembler {
 public:
  // The text that can be delivered now that `bytes` came.
  std::string Append(absl::string_view bytes);

  // What was held back, as U+FFFD; empty when nothing was. The assembler can be used again.
  std::string Finish();

 private:
  std::string held_;  // at most 3 bytes: the beginning of a character
};

// One stream of tokens. Not thread-safe.
class Detokenizer {
 public:
  // `tokenizer` must outlive the detokenizer.
  Detokenizer(const Tokenizer* tokenizer, SpecialTokenDisplay display, TextStart start);

  // The text that can be delivered now that the token `id` came; an id outside the vocabulary has
  // no text.
  std::string Append(int32_t id);

  // What was held back, as U+FFFD; empty when nothing was. Nothing may be appended after it.
  std::string Finish();

 private:
  const Tokenizer* const tokenizer_;
  const SpecialTokenDisplay display_;
  bool is_start_;           // no token of a whole text was shown yet
  int64_t spaces_to_drop_;  // the text to come loses up to so many leading spaces
  bool has_text_ = false;   // a token was shown, so that a separator goes before the next one
  Utf8Assembler assembler_;
};

// The whole text of `ids`. Errors: InvalidArgument for an id outside the vocabulary.
absl::StatusOr<std::string> Decode(const Tokenizer& tokenizer, absl::Span<const int32_t> ids,
                                   SpecialTokenDisplay display,
                                   TextStart start = TextStart::kWhole);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_DETOKENIZER_H_
