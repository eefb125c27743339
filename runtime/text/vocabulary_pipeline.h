// The tokenizers that GGUF files carry: control and user-defined tokens match the raw text, longest
// first; what lies between goes to an encoder for the kind of vocabulary.
#ifndef TRIREME_RUNTIME_TEXT_VOCABULARY_PIPELINE_H_
#define TRIREME_RUNTIME_TEXT_VOCABULARY_PIPELINE_H_

#include <memory>
#include <string>
#include <vector>

#include "runtime/text/special_tokens.h"
#include "runtime/text/text_encoder.h"
#include "runtime/text/text_pipeline.h"
#include "runtime/text/vocabulary.h"

namespace trireme::text {

class VocabularyPipeline : public TextPipeline {
 public:
  // `vocabulary` must outlive the pipeline. `adds_space_prefix`: the encoder puts a space before a
  // text, which decoding takes away again.
  VocabularyPipeline(const Vocabulary& vocabulary, std::unique_ptr<TextEncoder> encoder,
                     bool adds_space_prefix);

  absl::Status Encode(absl::string_view text, absl::Span<const TextSource> sources,
                      std::vector<int32_t>* ids) const override;
  std::string BytesOf(int32_t id, bool is_first) const override;
  const DecodeRules& decode_rules() const override { return decode_rules_; }
  const SurroundingTokens& surrounding_tokens() const override { return surrounding_tokens_; }

 private:
  void FindSpecialTokens();
  void FindTokensThatTakeSpaces();
  bool MayMatch(const SpecialTokenMatch& match, absl::Span<const TextSource> sources) const;

  const Vocabulary& vocabulary_;
  const std::unique_ptr<TextEncoder> encoder_;
  DecodeRules decode_rules_;
  SurroundingTokens surrounding_tokens_;
  std::vector<bool> is_turn_marker_;  // [tokens]: user-defined and used by the chat template
  std::vector<bool> takes_spaces_;    // [tokens]: white space after it belongs to it
  std::unique_ptr<SpecialTokenFinder> parsed_finder_;  // control, unknown and user-defined tokens
  std::unique_ptr<SpecialTokenFinder> plain_finder_;   // user-defined tokens only
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_VOCABULARY_PIPELINE_H_
