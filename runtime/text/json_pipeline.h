// The tokenizer of a tokenizer.json (the format of the Hugging Face tokenizers library): added
// tokens, normalizer, pre-tokenizer, model, post-processor and decoder, as the file describes them.
// A part that is not known is refused, since leaving it out would give wrong tokens.
#ifndef TRIREME_RUNTIME_TEXT_JSON_PIPELINE_H_
#define TRIREME_RUNTIME_TEXT_JSON_PIPELINE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/text/added_tokens.h"
#include "runtime/text/json_fields.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/piece_model.h"
#include "runtime/text/pre_tokenizer_steps.h"
#include "runtime/text/text_pipeline.h"
#include "runtime/text/token_decoder.h"

namespace trireme::text {

class JsonPipeline : public TextPipeline {
 public:
  // From the whole file. Added tokens that stand in `chat_template` are turn markers
  // (Trust::kUser). Errors (InvalidArgument): no JSON; another version; a part that is missing,
  // malformed or not supported. The message names the member.
  static absl::StatusOr<std::unique_ptr<JsonPipeline>> Create(absl::string_view file,
                                                              absl::string_view chat_template);

  absl::Status Encode(absl::string_view text, absl::Span<const TextSource> sources,
                      std::vector<int32_t>* ids) const override;
  std::string BytesOf(int32_t id, bool is_first) const override;
  const DecodeRules& decode_rules() const override { return decoder_.rules(); }
  const SurroundingTokens& surrounding_tokens() const override { return surrounding_tokens_; }

  const std::vector<std::string>& tokens() const { return tokens_; }  // [id], added ones included
  const std::vector<AddedToken>& added_tokens() const { return added_tokens_; }
  std::optional<int32_t> unknown_id() const { return unknown_id_; }

  // Whether the token is one of those that "skip special tokens" leaves out. As in the reference a
  // special token is not when it is known by its normalized spelling only, and that is another one.
  bool IsHidden(const AddedToken& token) const;

 private:
  // What lies between added tokens of the raw text.
  struct RawPiece {
    absl::string_view text;
    size_t begin;  // in the whole text
  };

  JsonPipeline() = default;
  absl::Status ReadModel(const JsonFields& file, bool gives_bytes);
  absl::Status MakeFinders(absl::string_view chat_template);
  AddedTokenVerdict Judge(const AddedToken& token, Trust trust) const;
  absl::Status EncodeRaw(const RawPiece& piece, absl::Span<const TextSource> sources,
                         std::vector<int32_t>* ids) const;
  absl::StatusOr<std::vector<TextSource>> SourcesOfNormalized(const RawPiece& piece,
                                                              absl::Span<const TextSource> sources,
                                                              absl::string_view normalized) const;
  absl::Status EncodeNormalized(absl::string_view text, bool starts_text,
                                std::vector<int32_t>* ids) const;

  std::vector<std::string> tokens_;
  std::vector<AddedToken> added_tokens_;
  int32_t model_tokens_ = 0;              // those from there on are added
  std::vector<std::string> added_texts_;  // [tokens]: as decoded, where not by the vocabulary
  std::vector<bool> is_turn_marker_;      // [tokens]
  std::optional<int32_t> unknown_id_;
  Normalizer normalizer_;
  PreTokenizerSteps steps_;
  std::unique_ptr<PieceModel> model_;
  TokenDecoder decoder_;
  SurroundingTokens surrounding_tokens_;
  std::unique_ptr<AddedTokenFinder> raw_finder_;
  std::unique_ptr<AddedTokenFinder> normalized_finder_;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_JSON_PIPELINE_H_
