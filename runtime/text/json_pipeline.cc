#include "runtime/text/json_pipeline.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/encoded_words.h"
#include "runtime/text/json_fields.h"
#include "runtime/text/pair_model.h"
#include "runtime/text/unigram_model.h"

namespace trireme::text {
namespace {

using nlohmann::json;

const json& MemberOrNull(const json& file, const char* key) {
  static const json* const null = new json();
  const auto member = file.find(key);
  return member == file.end() ? *null : *member;
}

// {"token": id}, in which every id from 0 on stands once, as a list.
absl::StatusOr<std::vector<std::string>> TokensOfMap(const json& vocabulary,
                                                     const std::string& path) {
  std::vector<std::string> tokens(vocabulary.size());
  std::vector<bool> is_taken(vocabulary.size(), false);
  for (const auto& [token, value] : vocabulary.items()) {
    const std::string place =
        absl::StrCat(path, "[\"", absl::CHexEscape(token.substr(0, 60)), "\"]");
    ASSIGN_OR_RETURN(const int32_t id, TokenIdOf(value, place));
    const auto index = static_cast<size_t>(id);
    if (index >= tokens.size()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s is %d, but there are %d tokens; wanted every id from 0 on once",
                          place, id, tokens.size()));
    }
    if (is_taken[index]) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s is %d, which \"%s\" is too; wanted every id from 0 on once", place,
                          id, absl::CHexEscape(tokens[index].substr(0, 60))));
    }
    is_taken[index] = true;
    tokens[index] = token;
  }
  return tokens;
}

// [["token", score], ...]
absl::StatusOr<std::vector<std::string>> TokensOfList(const json& vocabulary,
                                                      const std::string& path) {
  std::vector<std::string> tokens;
  tokens.reserve(vocabulary.size());
  for (const json& entry : vocabulary) {
    const bool is_pair = entry.is_array() && entry.size() == 2 && entry[0].is_string();
    if (!is_pair) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s[%d] is no pair of a token and its score", path, tokens.size()));
    }
    tokens.push_back(entry[0].get<std::string>());
  }
  return tokens;
}

absl::Status CheckVersion(const JsonFields& file) {
  ASSIGN_OR_RETURN(const std::optional<std::string> version, file.OptionalString("version"));
  return version.value_or("1.0") == "1.0"
             ? absl::OkStatus()
             : absl::InvalidArgumentError(
                   absl::StrCat("version is \"", version->substr(0, 60), "\"; only 1.0 is known"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<JsonPipeline>> JsonPipeline::Create(
    absl::string_view file, absl::string_view chat_template) {
  ASSIGN_OR_RETURN(const json document, ParseJsonFile(file));
  if (!document.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", document.type_name(), "; wanted an object with a member \"model\""));
  }
  ASSIGN_OR_RETURN(const JsonFields fields, JsonFields::Of(document, ""));
  RETURN_IF_ERROR(CheckVersion(fields));
  auto pipeline = std::unique_ptr<JsonPipeline>(new JsonPipeline());
  ASSIGN_OR_RETURN(pipeline->normalizer_,
                   Normalizer::Create(MemberOrNull(document, "normalizer"), "normalizer"));
  ASSIGN_OR_RETURN(pipeline->steps_, PreTokenizerSteps::Create(
                                         MemberOrNull(document, "pre_tokenizer"), "pre_tokenizer"));
  ASSIGN_OR_RETURN(pipeline->decoder_,
                   TokenDecoder::Create(MemberOrNull(document, "decoder"), "decoder"));
  RETURN_IF_ERROR(pipeline->ReadModel(fields, pipeline->steps_.gives_bytes()));
  pipeline->model_tokens_ = static_cast<int32_t>(pipeline->tokens_.size());
  if (document.contains("added_tokens")) {
    ASSIGN_OR_RETURN(const json* added, fields.List("added_tokens"));
    ASSIGN_OR_RETURN(pipeline->added_tokens_,
                     ReadAddedTokens(*added, "added_tokens", &pipeline->tokens_));
  }
  const auto count = static_cast<int32_t>(pipeline->tokens_.size());
  ASSIGN_OR_RETURN(
      pipeline->surrounding_tokens_,
      ReadPostProcessor(MemberOrNull(document, "post_processor"), "post_processor", count));
  RETURN_IF_ERROR(pipeline->MakeFinders(chat_template));
  return pipeline;
}

absl::Status JsonPipeline::ReadModel(const JsonFields& file, bool gives_bytes) {
  ASSIGN_OR_RETURN(const JsonFields model, file.Object("model"));
  ASSIGN_OR_RETURN(const std::string type, model.String("type"));
  const json* const vocabulary = model.Find("vocab");
  const std::string path = model.PathOf("vocab");
  if (type == "BPE") {
    if (vocabulary == nullptr || !vocabulary->is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is missing or no object of tokens and their ids"));
    }
    ASSIGN_OR_RETURN(tokens_, TokensOfMap(*vocabulary, path));
    ASSIGN_OR_RETURN(model_, PairModel::Create(model, tokens_, gives_bytes));
    ASSIGN_OR_RETURN(const std::optional<std::string> unknown, model.OptionalString("unk_token"));
    if (unknown.has_value()) {
      ASSIGN_OR_RETURN(unknown_id_, TokenIdOf((*vocabulary)[*unknown], path));
    }
    return absl::OkStatus();
  }
  if (type == "Unigram") {
    if (vocabulary == nullptr || !vocabulary->is_array()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is missing or no list of tokens and their scores"));
    }
    ASSIGN_OR_RETURN(tokens_, TokensOfList(*vocabulary, path));
    ASSIGN_OR_RETURN(model_, UnigramModel::Create(model, tokens_, gives_bytes));
    if (model.Find("unk_id") != nullptr) {
      ASSIGN_OR_RETURN(unknown_id_, model.Id("unk_id"));
    }
    return absl::OkStatus();
  }
  return UnknownType("model", type, "BPE, Unigram");
}

absl::Status JsonPipeline::MakeFinders(absl::string_view chat_template) {
  added_texts_.resize(tokens_.size());
  is_turn_marker_.assign(tokens_.size(), false);
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  for (const AddedToken& token : added_tokens_) {
    const auto index = static_cast<size_t>(token.id);
    is_turn_marker_[index] =
        CanMarkTurns(token.content) && absl::StrContains(chat_template, token.content);
    if (!token.is_normalized) {
      raw.push_back(token);
      continue;
    }
    normalized.push_back(token);
    ASSIGN_OR_RETURN(normalized.back().content, normalizer_.Normalize(token.content));
    // A space that the normalizer puts before every text belongs to the token.
    const std::string& spelling = normalized.back().content;
    const std::string decoded =
        decoder_.BytesOf(spelling, /*is_first=*/false, TokenDecoder::Spelling::kLiteral);
    if (absl::EndsWith(decoded, token.content)) {
      added_texts_[index] = spelling;
    }
    if (normalized.back().content.size() > kAddedTokenBytesMax) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "added_tokens: the normalized text of token %d has %d bytes; at most %d are supported",
          token.id, normalized.back().content.size(), kAddedTokenBytesMax));
    }
  }
  raw_finder_ = std::make_unique<AddedTokenFinder>(std::move(raw));
  normalized_finder_ = std::make_unique<AddedTokenFinder>(std::move(normalized));
  return absl::OkStatus();
}

AddedTokenVerdict JsonPipeline::Judge(const AddedToken& token, Trust trust) const {
  switch (trust) {
    case Trust::kTemplate:
    case Trust::kParsed:
      return AddedTokenVerdict::kMatch;
    case Trust::kText:
      return token.is_special ? AddedTokenVerdict::kText : AddedTokenVerdict::kMatch;
    case Trust::kUser:
      return token.is_special || is_turn_marker_[static_cast<size_t>(token.id)]
                 ? AddedTokenVerdict::kAbsent
                 : AddedTokenVerdict::kMatch;
    case Trust::kPlain:
      return AddedTokenVerdict::kAbsent;
  }
  return AddedTokenVerdict::kAbsent;
}

absl::Status JsonPipeline::Encode(absl::string_view text, absl::Span<const TextSource> sources,
                                  std::vector<int32_t>* ids) const {
  const std::vector<SpecialTokenMatch> matches =
      raw_finder_->Find(text, [this, sources](const AddedToken& token, size_t begin, size_t end) {
        return Judge(token, LeastTrust(sources, begin, end));
      });
  EncodedWords words;  // of pieces that depend on nothing around them
  const auto encode = [&](size_t begin, size_t end) -> absl::Status {
    const RawPiece piece = {text.substr(begin, end - begin), begin};
    const bool is_free = begin > 0 && normalized_finder_->empty();
    if (is_free && words.Append(piece.text, ids)) {
      return absl::OkStatus();
    }
    const size_t first = ids->size();
    RETURN_IF_ERROR(EncodeRaw(piece, sources, ids));
    if (is_free) {
      words.Keep(piece.text, first, *ids);
    }
    return absl::OkStatus();
  };
  size_t done = 0;
  for (const SpecialTokenMatch& match : matches) {
    if (done < match.begin) {
      RETURN_IF_ERROR(encode(done, match.begin));
    }
    ids->push_back(match.id);
    done = match.end;
  }
  return done < text.size() ? encode(done, text.size()) : absl::OkStatus();
}

// The sources of the piece in its normalized text. Where the parts that the sources wrote do not
// become the whole when they are normalized one by one, nobody can say who wrote what, and the
// least trust of all counts.
absl::StatusOr<std::vector<TextSource>> JsonPipeline::SourcesOfNormalized(
    const RawPiece& piece, absl::Span<const TextSource> sources,
    absl::string_view normalized) const {
  const size_t piece_end = piece.begin + piece.text.size();
  std::vector<TextSource> result;
  std::string joined;
  auto source =
      std::upper_bound(sources.begin(), sources.end(), piece.begin,
                       [](size_t begin, const TextSource& each) { return begin < each.end; });
  for (size_t begin = piece.begin; begin < piece_end; ++source) {
    const size_t end = std::min(source->end, piece_end);
    const NormalizedPart part =
        begin == piece.begin ? NormalizedPart::kWhole : NormalizedPart::kMiddle;
    ASSIGN_OR_RETURN(
        const std::string text,
        normalizer_.Normalize(piece.text.substr(begin - piece.begin, end - begin), part));
    joined += text;
    result.push_back({joined.size(), source->trust});
    begin = end;
  }
  if (joined != normalized) {
    return std::vector<TextSource>{
        {normalized.size(), LeastTrust(sources, piece.begin, piece_end)}};
  }
  return result;
}

absl::Status JsonPipeline::EncodeRaw(const RawPiece& piece, absl::Span<const TextSource> sources,
                                     std::vector<int32_t>* ids) const {
  std::string normalized_text;
  absl::string_view text = piece.text;
  if (!normalizer_.is_identity()) {
    ASSIGN_OR_RETURN(normalized_text, normalizer_.Normalize(piece.text));
    text = normalized_text;
  }
  const bool starts_text = piece.begin == 0;
  if (normalized_finder_->empty()) {
    return EncodeNormalized(text, starts_text, ids);
  }
  ASSIGN_OR_RETURN(const std::vector<TextSource> own_sources,
                   SourcesOfNormalized(piece, sources, text));
  const std::vector<SpecialTokenMatch> matches = normalized_finder_->Find(
      text, [this, &own_sources](const AddedToken& token, size_t begin, size_t end) {
        return Judge(token, LeastTrust(own_sources, begin, end));
      });
  size_t done = 0;
  for (const SpecialTokenMatch& match : matches) {
    if (done < match.begin) {
      RETURN_IF_ERROR(
          EncodeNormalized(text.substr(done, match.begin - done), starts_text && done == 0, ids));
    }
    ids->push_back(match.id);
    done = match.end;
  }
  return EncodeNormalized(text.substr(done), starts_text && done == 0, ids);
}

absl::Status JsonPipeline::EncodeNormalized(absl::string_view text, bool starts_text,
                                            std::vector<int32_t>* ids) const {
  if (text.empty()) {
    return absl::OkStatus();
  }
  PieceList list;
  list.text = std::string(text);
  list.pieces = {{0, static_cast<uint32_t>(text.size())}};
  list.starts_text = starts_text;
  return steps_.Apply(std::move(list),
                      [this, ids](const PieceList& batch) { return model_->Encode(batch, ids); });
}

bool JsonPipeline::IsHidden(const AddedToken& token) const {
  if (!token.is_special || !token.is_normalized) {
    return token.is_special;
  }
  const absl::StatusOr<std::string> spelling = normalizer_.Normalize(token.content);
  return spelling.ok() && *spelling == token.content;
}

std::string JsonPipeline::BytesOf(int32_t id, bool is_first) const {
  const auto index = static_cast<size_t>(id);
  if (id < model_tokens_) {
    return decoder_.BytesOf(tokens_[index], is_first);
  }
  const std::string& text = added_texts_[index].empty() ? tokens_[index] : added_texts_[index];
  return decoder_.BytesOf(text, is_first, TokenDecoder::Spelling::kLiteral);
}

}  // namespace trireme::text
