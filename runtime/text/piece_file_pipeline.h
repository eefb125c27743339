// The tokenizer of a SentencePiece tokenizer.model. As in the published engine user-defined pieces
// match in any text and control pieces in none; only in a chat template's own text
// (Trust::kTemplate) control pieces are parsed, since a prompt could not be made otherwise.
// User-defined pieces that the template uses match there and, against forgery, not in what users
// wrote (Trust::kUser).
#ifndef TRIREME_RUNTIME_TEXT_PIECE_FILE_PIPELINE_H_
#define TRIREME_RUNTIME_TEXT_PIECE_FILE_PIPELINE_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/text/added_tokens.h"
#include "runtime/text/piece_file.h"
#include "runtime/text/piece_normalizer.h"
#include "runtime/text/sentence_piece_encoder.h"
#include "runtime/text/text_pipeline.h"
#include "runtime/text/unigram_trie.h"
#include "runtime/text/vocabulary.h"

namespace trireme::text {

class PieceFilePipeline : public TextPipeline {
 public:
  // `vocabulary` is made of the file's pieces and must outlive the pipeline. Errors
  // (InvalidArgument): those of PieceNormalizer and SentencePieceEncoder; pieces of type unused in
  // a BPE model; a piece of over 512 bytes; byte fallback without all 256 byte pieces.
  static absl::StatusOr<std::unique_ptr<PieceFilePipeline>> Create(const PieceFile& file,
                                                                   const Vocabulary& vocabulary);

  absl::Status Encode(absl::string_view text, absl::Span<const TextSource> sources,
                      std::vector<int32_t>* ids) const override;
  std::string BytesOf(int32_t id, bool is_first) const override;
  const DecodeRules& decode_rules() const override { return decode_rules_; }
  const SurroundingTokens& surrounding_tokens() const override { return surrounding_tokens_; }

 private:
  PieceFilePipeline(const PieceFile& file, const Vocabulary& vocabulary,
                    PieceNormalizer normalizer);
  absl::Status MakeUnigram(const PieceFile& file);
  absl::Status EncodeBetweenControls(absl::string_view text, size_t begin,
                                     absl::Span<const TextSource> sources,
                                     std::vector<int32_t>* ids) const;
  absl::Status EncodeNormalized(absl::string_view text, std::vector<int32_t>* ids) const;
  absl::Status EncodeUnigram(absl::string_view text, std::vector<int32_t>* ids) const;

  const Vocabulary& vocabulary_;
  const PieceNormalizer normalizer_;
  const int32_t unknown_id_;
  const std::string unknown_text_;
  DecodeRules decode_rules_;
  SurroundingTokens surrounding_tokens_;
  std::vector<bool> is_turn_marker_;                  // [tokens]
  std::unique_ptr<AddedTokenFinder> control_finder_;  // turn markers too
  std::unique_ptr<AddedTokenFinder> user_finder_;
  std::unique_ptr<SentencePieceEncoder> pairs_;  // BPE; else a Unigram model
  UnigramTrie<float> trie_;
  float unknown_score_ = 0;
  bool falls_back_to_bytes_ = false;
  std::array<int32_t, 256> byte_ids_;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_PIECE_FILE_PIPELINE_H_
