// What a kind of tokenizer does between a text and its ids, added tokens included, and back. Three
// kinds: vocabulary_pipeline.h (GGUF), json_pipeline.h (tokenizer.json) and piece_file_pipeline.h
// (tokenizer.model).
#ifndef TRIREME_RUNTIME_TEXT_TEXT_PIPELINE_H_
#define TRIREME_RUNTIME_TEXT_TEXT_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/text/post_processor.h"

namespace trireme::text {

// Which spellings of added tokens are those tokens.
enum class Trust : uint8_t {
  kTemplate,  // all: the text of a chat template
  kParsed,    // all that the published engine finds in a text
  kText,      // those that are not special
  kUser,      // those that are neither special nor used by the chat template
  kPlain,     // none
};

// Bytes of a text from the end of the source before it up to `end`.
struct TextSource {
  size_t end;
  Trust trust;
};

// How the bytes of tokens join to a text.
struct DecodeRules {
  int64_t leading_spaces = 0;        // up to so many go away at the beginning of a whole text
  bool only_of_first_token = false;  // and only from the very first token, be it shown or not
  bool first_token_differs = false;  // BytesOf has another answer for the first token shown
  bool shows_unknown = false;        // the unknown token is text, not a special token
  std::string separator;             // between tokens
};

// Immutable after construction; any number of threads may call it.
class TextPipeline {
 public:
  virtual ~TextPipeline() = default;

  // Appends the ids of `text` (valid UTF-8, below 1 GiB), whose sources are in ascending order and
  // end at its end.
  [[nodiscard]] virtual absl::Status Encode(absl::string_view text,
                                            absl::Span<const TextSource> sources,
                                            std::vector<int32_t>* ids) const = 0;

  // The bytes that the token adds to a text; `id` is in the vocabulary.
  virtual std::string BytesOf(int32_t id, bool is_first) const = 0;

  virtual const DecodeRules& decode_rules() const = 0;

  // What stands around the ids of a text unless asked otherwise.
  virtual const SurroundingTokens& surrounding_tokens() const = 0;
};

// The least trust of bytes [begin, end).
Trust LeastTrust(absl::Span<const TextSource> sources, size_t begin, size_t end);

// Whether an added token of that spelling, when it stands in the chat template, marks turns there,
// so that nobody else may write it. A single character or white space does not, even where a
// template uses it.
bool CanMarkTurns(absl::string_view spelling);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_TEXT_PIPELINE_H_
