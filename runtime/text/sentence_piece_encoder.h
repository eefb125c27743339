// SentencePiece BPE (tokenizer.ggml.model "llama"): spaces become U+2581, and within a whole piece
// of text characters merge by the score of the token that they make; what is in no token becomes
// its bytes.
//
// A text is cut into words before spaces that no merge reaches across, which in published
// vocabularies are nearly all: none has a token such as "of the". Words merge one by one, with the
// same result, and one that comes again is copied.
#ifndef TRIREME_RUNTIME_TEXT_SENTENCE_PIECE_ENCODER_H_
#define TRIREME_RUNTIME_TEXT_SENTENCE_PIECE_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/text/byte_pair_encoding.h"
#include "runtime/text/character_ids.h"
#include "runtime/text/text_encoder.h"
#include "runtime/text/vocabulary.h"

namespace trireme::text {

class SentencePieceEncoder : public TextEncoder {
 public:
  // `vocabulary` must outlive the encoder. Errors (InvalidArgument): no scores; a byte token that
  // is not spelled <0x00> to <0xFF>; a token of more than 512 bytes.
  static absl::StatusOr<std::unique_ptr<SentencePieceEncoder>> Create(const Vocabulary& vocabulary);

  // Puts a space before the text when the vocabulary asks for it. Errors (InvalidArgument): a
  // character that is in no token, when neither all of its byte tokens nor an unknown token exist.
  absl::Status Encode(absl::string_view text, EncodedWords* words,
                      std::vector<int32_t>* ids) const override;
  std::string BytesOf(int32_t id) const override;

 private:
  explicit SentencePieceEncoder(const Vocabulary& vocabulary);
  absl::Status ReadByteTokens();
  absl::Status MakePairs();
  int32_t SymbolOf(char32_t code_point) const;
  int32_t SymbolOfText(absl::string_view text);
  void AddPairsOf(int32_t id, int32_t rank);
  size_t EndOfWord(absl::string_view text, size_t begin) const;
  absl::Status AppendTokens(const std::vector<int32_t>& symbols, std::vector<int32_t>* ids) const;
  absl::Status AppendCharacter(char32_t code_point, std::vector<int32_t>* ids) const;

  const Vocabulary& vocabulary_;
  const bool adds_space_prefix_;
  // Symbols: token ids; from vocabulary size on, characters that are in tokens but are none; a
  // negative number -1 - c for any other character c.
  CharacterIds symbols_;
  std::vector<char32_t> extra_characters_;         // of symbol size + i
  absl::flat_hash_set<char32_t> joined_to_space_;  // some merge joins them with a space after them
  struct PairOfToken {
    int32_t left;
    int32_t right;
    Merge merge;
  };
  std::vector<PairOfToken> found_pairs_;  // while building only
  std::unique_ptr<PairTable> pairs_;
  std::array<int32_t, 256> byte_ids_;  // -1: none
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_SENTENCE_PIECE_ENCODER_H_
