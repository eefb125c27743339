// The "model" of a tokenizer.json: turns pieces of text into token ids. Two kinds: pair_model.h
// ("BPE") and unigram_model.h ("Unigram").
#ifndef TRIREME_RUNTIME_TEXT_PIECE_MODEL_H_
#define TRIREME_RUNTIME_TEXT_PIECE_MODEL_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/text/pre_tokenizer_steps.h"

namespace trireme::text {

// Immutable after construction; any number of threads may call it.
class PieceModel {
 public:
  virtual ~PieceModel() = default;

  // Appends the ids of all pieces, in order. Errors (InvalidArgument): a character that the
  // vocabulary has no way to express.
  [[nodiscard]] virtual absl::Status Encode(const PieceList& list,
                                            std::vector<int32_t>* ids) const = 0;
};

// The byte that a token such as "<0x0A>" stands for, or -1 when `text` is not spelled like that.
int ByteOfToken(absl::string_view text);

// The ids of the tokens "<0x00>" to "<0xFF>"; -1 for those that are not there.
std::array<int32_t, 256> FindByteTokens(const std::vector<std::string>& tokens);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_PIECE_MODEL_H_
