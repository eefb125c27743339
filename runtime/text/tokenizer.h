// Text to token ids and token ids to bytes, for one model's vocabulary. Joining the bytes of
// generated tokens into text that is always valid UTF-8 is the detokenizer's work; rendering a
// conversation is the chat template's.
//
// Security rule: text that a user wrote never becomes a control token. A prompt is therefore
// encoded from segments that say who wrote them, not from one string.
#ifndef TRIREME_RUNTIME_TEXT_TOKENIZER_H_
#define TRIREME_RUNTIME_TEXT_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/text/text_pipeline.h"
#include "runtime/text/tokenizer_settings.h"
#include "runtime/text/vocabulary.h"

namespace trireme::text {

// What becomes of the spelling of a control token, such as <|im_end|>, in a text.
enum class SpecialTokens : uint8_t {
  kParse,      // it is that token
  kAsText,     // it is ordinary text; user-defined tokens match all the same
  kAllAsText,  // it is ordinary text, and so are the spellings of user-defined tokens
};

// A part of a prompt. Trusted: written by the model's chat template, so control tokens are parsed
// in it. Not trusted: written by a user, a tool or a model, so neither control tokens nor
// user-defined ones that the chat template uses (turn markers such as <think>) are.
struct TextSegment {
  absl::string_view text;
  bool trusted = false;
};

// Immutable after Create; any number of threads may call it.
class Tokenizer {
 public:
  // Errors: InvalidArgument for a faulty vocabulary (the message names the key), Unimplemented for
  // a kind of tokenizer that is known but not built.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(VocabularyData data);

  // The same from the bytes of a tokenizer.json.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> CreateFromJson(
      absl::string_view file, const TokenizerSettings& settings);

  // The same from the bytes of a SentencePiece tokenizer.model.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> CreateFromPieces(
      absl::string_view file, const TokenizerSettings& settings);

  // The same from the bytes of a rank file (rank_file.h).
  static absl::StatusOr<std::unique_ptr<Tokenizer>> CreateFromRanks(
      absl::string_view file, const TokenizerSettings& settings);

  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // The ids of `text`; each maximal invalid part that is not UTF-8 counts as U+FFFD. With `add_bos`
  // the beginning-of-sequence token, or what else the file wants around every text, is added if the
  // file asks for it, whatever the text begins with. Errors: InvalidArgument for a text of 1 GiB or
  // more, or with a character that no token can express. Time and memory are linear in the text,
  // but for a log factor at worst.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text, SpecialTokens special_tokens,
                                              bool add_bos) const;

  // The ids of the joined segments, as Encode would give for the joined text but for the rule
  // above. With `add_bos` what the file wants before every text is added unless the prompt begins
  // with it already.
  absl::StatusOr<std::vector<int32_t>> EncodeSegments(absl::Span<const TextSegment> segments,
                                                      bool add_bos) const;

  int32_t vocabulary_size() const { return vocabulary_->size(); }

  // The token's text as the vocabulary spells it, for messages; empty for an id outside the
  // vocabulary.
  absl::string_view TokenText(int32_t id) const;

  // The bytes that the token adds to a text, perhaps a part of a character; a special token's own
  // spelling. Empty for an id outside the vocabulary. The view lives as long as the tokenizer.
  absl::string_view TokenBytes(int32_t id) const;

  bool IsEndOfGeneration(int32_t id) const;

  // Control tokens, and the unknown one where it is no text: what "hide special tokens" hides.
  bool IsControl(int32_t id) const;

  // Ascending.
  absl::Span<const int32_t> end_of_generation_ids() const {
    return vocabulary_->end_of_generation_ids();
  }
  std::optional<int32_t> bos_id() const { return vocabulary_->bos_id(); }
  std::optional<int32_t> eos_id() const { return vocabulary_->eos_id(); }
  std::optional<int32_t> unknown_id() const { return vocabulary_->unknown_id(); }
  std::optional<int32_t> padding_id() const { return vocabulary_->padding_id(); }
  // Whether the file wants tokens before every text: mostly the beginning-of-sequence token.
  bool adds_bos() const { return !pipeline_->surrounding_tokens().prefix_ids.empty(); }

  const DecodeRules& decode_rules() const { return pipeline_->decode_rules(); }
  // TokenBytes for the first token shown of a whole text, where decode_rules() says it differs.
  std::string FirstTokenBytes(int32_t id) const;

  // As the file has it; empty when it has none.
  const std::string& chat_template() const { return vocabulary_->data().chat_template; }

 private:
  Tokenizer(std::unique_ptr<Vocabulary> vocabulary, std::unique_ptr<TextPipeline> pipeline);

  const std::unique_ptr<Vocabulary> vocabulary_;
  const std::unique_ptr<TextPipeline> pipeline_;
  std::vector<std::string> token_bytes_;  // [tokens]
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_TOKENIZER_H_
