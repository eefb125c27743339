// How one kind of vocabulary turns ordinary text into tokens, after special tokens were cut out.
// Two kinds: byte_level_encoder.h ("gpt2") and sentence_piece_encoder.h ("llama").
#ifndef TRIREME_RUNTIME_TEXT_TEXT_ENCODER_H_
#define TRIREME_RUNTIME_TEXT_TEXT_ENCODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/text/encoded_words.h"

namespace trireme::text {

// Immutable after construction; any number of threads may call it.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;

  // Appends the ids of `text` (valid UTF-8, not empty, below 1 GiB), which is the beginning of the
  // whole text or follows a special token. Never appends a control token. `words` are those of the
  // call, whose text lives as long.
  [[nodiscard]] virtual absl::Status Encode(absl::string_view text, EncodedWords* words,
                                            std::vector<int32_t>* ids) const = 0;

  // The bytes that the token `id`, of a type other than control, unknown and user-defined, stands
  // for.
  virtual std::string BytesOf(int32_t id) const = 0;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_TEXT_ENCODER_H_
