#include "runtime/text/vocabulary_pipeline.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/unicode_forms.h"

namespace trireme::text {
namespace {

bool IsLiteral(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown ||
         type == TokenType::kUserDefined;
}

}  // namespace

VocabularyPipeline::VocabularyPipeline(const Vocabulary& vocabulary,
                                       std::unique_ptr<TextEncoder> encoder, bool adds_space_prefix)
    : vocabulary_(vocabulary), encoder_(std::move(encoder)) {
  decode_rules_.leading_spaces = adds_space_prefix ? 1 : 0;
  decode_rules_.only_of_first_token = true;
  if (vocabulary.adds_bos()) {
    surrounding_tokens_.prefix_ids = {*vocabulary.bos_id()};
  }
  FindSpecialTokens();
  FindTokensThatTakeSpaces();
}

void VocabularyPipeline::FindSpecialTokens() {
  std::vector<SpecialToken> parsed;
  std::vector<SpecialToken> plain;
  is_turn_marker_.assign(static_cast<size_t>(vocabulary_.size()), false);
  for (int32_t id = 0; id < vocabulary_.size(); ++id) {
    const std::string& text = vocabulary_.Text(id);
    const TokenType type = vocabulary_.Type(id);
    if (!IsLiteral(type) || text.empty()) {
      continue;
    }
    parsed.push_back({text, id});
    if (type == TokenType::kUserDefined) {
      plain.push_back({text, id});
      is_turn_marker_[static_cast<size_t>(id)] =
          CanMarkTurns(text) && absl::StrContains(vocabulary_.data().chat_template, text);
    }
  }
  parsed_finder_ = std::make_unique<SpecialTokenFinder>(std::move(parsed));
  plain_finder_ = std::make_unique<SpecialTokenFinder>(std::move(plain));
}

// Phi-3 was trained with control tokens that swallow the white space after them. GGUF has no key
// for that, so, like the reference, it is known by the model's name.
void VocabularyPipeline::FindTokensThatTakeSpaces() {
  takes_spaces_.assign(static_cast<size_t>(vocabulary_.size()), false);
  const std::string name = absl::AsciiStrToLower(vocabulary_.data().model_name);
  if (!absl::StrContains(name, "phi-3") && !absl::StrContains(name, "phi3")) {
    return;
  }
  for (int32_t id = 0; id < vocabulary_.size(); ++id) {
    const std::string& text = vocabulary_.Text(id);
    const bool control = vocabulary_.Type(id) == TokenType::kControl;
    const bool keeps = text == "<unk>" || text == "<s>" || text == "<|endoftext|>";
    takes_spaces_[static_cast<size_t>(id)] = (control && !keeps) || text == "</s>";
  }
}

bool VocabularyPipeline::MayMatch(const SpecialTokenMatch& match,
                                  absl::Span<const TextSource> sources) const {
  const bool user_defined = vocabulary_.Type(match.id) == TokenType::kUserDefined;
  switch (LeastTrust(sources, match.begin, match.end)) {
    case Trust::kTemplate:
    case Trust::kParsed:
      return true;
    case Trust::kText:
      return user_defined;
    case Trust::kUser:
      return user_defined && !is_turn_marker_[static_cast<size_t>(match.id)];
    case Trust::kPlain:
      return false;
  }
  return false;
}

absl::Status VocabularyPipeline::Encode(absl::string_view text,
                                        absl::Span<const TextSource> sources,
                                        std::vector<int32_t>* ids) const {
  const bool any_parsed = std::any_of(sources.begin(), sources.end(), [](const TextSource& source) {
    return source.trust == Trust::kTemplate || source.trust == Trust::kParsed;
  });
  const SpecialTokenFinder& finder = any_parsed ? *parsed_finder_ : *plain_finder_;
  const std::vector<SpecialTokenMatch> matches = finder.Find(
      text, [this, sources](const SpecialTokenMatch& match) { return MayMatch(match, sources); });
  size_t begin = 0;
  bool takes_spaces = false;
  EncodedWords words;
  const auto encode_until = [this, text, ids, &words, &begin, &takes_spaces](size_t end) {
    const absl::string_view piece = text.substr(begin, end - begin);
    const absl::string_view rest =
        takes_spaces ? StripWhiteSpace(piece, /*left=*/true, /*right=*/false) : piece;
    return rest.empty() ? absl::OkStatus() : encoder_->Encode(rest, &words, ids);
  };
  for (const SpecialTokenMatch& match : matches) {
    RETURN_IF_ERROR(encode_until(match.begin));
    ids->push_back(match.id);
    begin = match.end;
    takes_spaces = takes_spaces_[static_cast<size_t>(match.id)];
  }
  return encode_until(text.size());
}

std::string VocabularyPipeline::BytesOf(int32_t id, bool /*is_first*/) const {
  return IsLiteral(vocabulary_.Type(id)) ? vocabulary_.Text(id) : encoder_->BytesOf(id);
}

}  // namespace trireme::text
