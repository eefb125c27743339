#include "runtime/text/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/log.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"

namespace trireme::text {
namespace {

// Spellings that end a turn or a document. The last six are those of fill-in-the-middle models,
// which write them where a file or a repository ends.
constexpr absl::string_view kEndSpellings[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<\xef\xbd\x9c"
    "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
    "<|fim_pad|>",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<reponame>",
    "<|file_sep|>",
    "<fim-pad>",
};

// For messages: a token's text with anything unprintable escaped, cut to a readable length.
std::string Shown(absl::string_view text) {
  constexpr size_t kShownBytes = 60;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kShownBytes)),
                      text.size() > kShownBytes ? "..." : "", "\"");
}

absl::Status CheckLength(absl::string_view key, size_t length, size_t tokens) {
  if (length == tokens || length == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s has %d entries for %d tokens; it needs one for each token", key, length, tokens));
}

}  // namespace

Vocabulary::Vocabulary(VocabularyData data) : data_(std::move(data)) {}

absl::StatusOr<std::unique_ptr<Vocabulary>> Vocabulary::Create(VocabularyData data,
                                                               const VocabularyDefaults& defaults) {
  auto vocabulary = std::unique_ptr<Vocabulary>(new Vocabulary(std::move(data)));
  RETURN_IF_ERROR(vocabulary->CheckTokens());
  RETURN_IF_ERROR(vocabulary->ResolveIds(defaults));
  vocabulary->FindEndOfGeneration();
  return vocabulary;
}

TokenType Vocabulary::Type(int32_t id) const {
  return data_.token_types.empty()
             ? TokenType::kNormal
             : static_cast<TokenType>(data_.token_types[static_cast<size_t>(id)]);
}

int32_t Vocabulary::Find(absl::string_view text) const {
  const auto entry = ids_.find(text);
  return entry == ids_.end() ? -1 : entry->second;
}

int32_t Vocabulary::FindOrdinary(absl::string_view text) const {
  const int32_t id = Find(text);
  if (id < 0) {
    return -1;
  }
  const TokenType type = Type(id);
  const bool ordinary =
      type != TokenType::kControl && type != TokenType::kUnknown && type != TokenType::kByte;
  return ordinary ? id : -1;
}

absl::Status Vocabulary::CheckTokens() {
  const size_t tokens = data_.tokens.size();
  if (tokens == 0) {
    return absl::InvalidArgumentError(
        "tokenizer.ggml.tokens is missing or empty: the vocabulary has no tokens");
  }
  if (tokens > INT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrFormat("tokenizer.ggml.tokens has %d tokens; at most 2^31 - 1 fit", tokens));
  }
  RETURN_IF_ERROR(CheckLength("tokenizer.ggml.token_type", data_.token_types.size(), tokens));
  RETURN_IF_ERROR(CheckLength("tokenizer.ggml.scores", data_.scores.size(), tokens));
  ids_.reserve(tokens);
  for (size_t i = 0; i < tokens; ++i) {
    const std::string& text = data_.tokens[i];
    if (!data_.token_types.empty() && (data_.token_types[i] < 0 || data_.token_types[i] > 6)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tokenizer.ggml.token_type of token %d is %d; known types are 0 to 6", i,
                          data_.token_types[i]));
    }
    if (!data_.scores.empty() && std::isnan(data_.scores[i])) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tokenizer.ggml.scores of token %d is not a number", i));
    }
    if (!IsValidUtf8(text)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "tokenizer.ggml.tokens: the text %s of token %d is not UTF-8", Shown(text), i));
    }
    const auto [entry, is_new] = ids_.try_emplace(text, static_cast<int32_t>(i));
    if (!is_new && !text.empty()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tokenizer.ggml.tokens: duplicate token, ids %d and %d are both %s",
                          entry->second, i, Shown(text)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int32_t>> Vocabulary::Resolve(
    absl::string_view key, std::optional<int64_t> id, std::optional<int64_t> default_id) const {
  if (id.has_value() && (*id < 0 || *id >= size())) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "tokenizer.ggml.%s is %d, but the vocabulary has tokens 0 to %d", key, *id, size() - 1));
  }
  const std::optional<int64_t> chosen = id.has_value() ? id : default_id;
  if (!chosen.has_value() || *chosen >= size()) {
    return std::optional<int32_t>();
  }
  return std::optional<int32_t>(static_cast<int32_t>(*chosen));
}

absl::Status Vocabulary::ResolveIds(const VocabularyDefaults& defaults) {
  ASSIGN_OR_RETURN(bos_id_, Resolve("bos_token_id", data_.bos_id, defaults.bos_id));
  ASSIGN_OR_RETURN(eos_id_, Resolve("eos_token_id", data_.eos_id, defaults.eos_id));
  ASSIGN_OR_RETURN(eot_id_, Resolve("eot_token_id", data_.eot_id, std::nullopt));
  ASSIGN_OR_RETURN(eom_id_, Resolve("eom_token_id", data_.eom_id, std::nullopt));
  ASSIGN_OR_RETURN(unknown_id_, Resolve("unknown_token_id", data_.unknown_id, defaults.unknown_id));
  for (const int64_t id : data_.fill_in_middle_ids) {
    ASSIGN_OR_RETURN(const std::optional<int32_t> resolved,
                     Resolve("fim_pad, fim_rep or fim_sep_token_id", id, std::nullopt));
    fill_in_middle_ids_.push_back(*resolved);
  }
  // Source models write -1 for "none", which becomes 2^32 - 1 in files.
  if (data_.padding_id.has_value() && (*data_.padding_id < 0 || *data_.padding_id >= size())) {
    Log(LogLevel::kWarning,
        absl::StrFormat(
            "tokenizer.ggml.padding_token_id is %d, but the vocabulary has tokens 0 to %d: "
            "going on without a padding token",
            *data_.padding_id, size() - 1));
  } else if (data_.padding_id.has_value()) {
    padding_id_ = static_cast<int32_t>(*data_.padding_id);
  }
  adds_bos_ = data_.add_bos.value_or(defaults.add_bos && bos_id_.has_value());
  if (adds_bos_ && !bos_id_.has_value()) {
    return absl::InvalidArgumentError(
        "tokenizer.ggml.add_bos_token is true, but there is no tokenizer.ggml.bos_token_id");
  }
  return absl::OkStatus();
}

void Vocabulary::FindEndOfGeneration() {
  std::set<int32_t> ids(fill_in_middle_ids_.begin(), fill_in_middle_ids_.end());
  for (const std::optional<int32_t>& id : {eos_id_, eot_id_, eom_id_}) {
    if (id.has_value()) {
      ids.insert(*id);
    }
  }
  for (const int64_t id : data_.end_of_generation_ids) {
    if (id >= 0 && id < size()) {
      ids.insert(static_cast<int32_t>(id));
    }
  }
  for (const absl::string_view spelling : kEndSpellings) {
    const int32_t id = Find(spelling);
    // Of another type it is text: Gemma 3's "</s>" is an HTML tag.
    if (id >= 0 && Type(id) == TokenType::kControl) {
      ids.insert(id);
    }
  }
  // In the harmony format <|end|> closes one message of a turn, and the model goes on.
  const int32_t end = Find("<|end|>");
  if (end >= 0 && Find("<|return|>") >= 0 && Find("<|call|>") >= 0) {
    ids.erase(end);
  }
  end_of_generation_ids_.assign(ids.begin(), ids.end());
}

}  // namespace trireme::text
