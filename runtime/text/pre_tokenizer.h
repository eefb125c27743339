// Cuts a text into the pieces ("words") inside which byte-level BPE may merge. Each family of
// models publishes one or more regular expressions for it; GGUF files name the family in
// tokenizer.ggml.pre.
//
// How: every character is first turned into one byte that says all that the expressions ask of it
// (ASCII as itself, others by their Unicode 16.0 category), and PCRE2 runs on those bytes. So the
// classes are ours, not those of the installed library, a class test is one lookup, and no UTF-8 is
// decoded twice. All expressions take time linear in the text.
#ifndef TRIREME_RUNTIME_TEXT_PRE_TOKENIZER_H_
#define TRIREME_RUNTIME_TEXT_PRE_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/text/pre_tokenizer_families.h"

namespace trireme::text {

// Immutable after Create; any number of threads may call Split.
class PreTokenizer {
 public:
  // `name` and the errors are those of FindPreTokenizerFamily.
  static absl::StatusOr<std::unique_ptr<PreTokenizer>> Create(absl::string_view name);

  ~PreTokenizer();
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;

  const PreTokenizerTraits& traits() const { return traits_; }

  // The ends of the words of `text` (valid UTF-8, below 2^32 bytes), in bytes, ascending; the last
  // one is the text's size. Empty for an empty text. Errors: Internal when PCRE2 gives up, which
  // the patterns here do not make it do.
  absl::StatusOr<std::vector<uint32_t>> Split(absl::string_view text) const;

 private:
  class Expression;

  explicit PreTokenizer(PreTokenizerTraits traits);
  std::string ClassesOf(absl::string_view text) const;

  const PreTokenizerTraits traits_;
  std::vector<std::unique_ptr<Expression>> expressions_;
  // Code point -> class byte, in two steps: 256 code points a page, equal pages once.
  std::vector<uint16_t> page_index_;
  std::vector<uint8_t> pages_;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_PRE_TOKENIZER_H_
