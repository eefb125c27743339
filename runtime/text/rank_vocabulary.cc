#include "runtime/text/rank_vocabulary.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/byte_level.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

// Published vocabularies keep up to 1100 ids behind the ranks.
constexpr int64_t kAddedTokensMax = 1 << 16;

void AppendNumbered(absl::string_view prefix, int first, int last,
                    std::vector<std::string>* tokens) {
  for (int number = first; number <= last; ++number) {
    tokens->push_back(absl::StrCat(prefix, number, "|>"));
  }
}

std::vector<std::string> Llama3Tokens() {
  std::vector<std::string> tokens = {"<|begin_of_text|>",
                                     "<|end_of_text|>",
                                     "<|reserved_special_token_0|>",
                                     "<|reserved_special_token_1|>",
                                     "<|finetune_right_pad_id|>",
                                     "<|reserved_special_token_2|>",
                                     "<|start_header_id|>",
                                     "<|end_header_id|>",
                                     "<|eom_id|>",
                                     "<|eot_id|>",
                                     "<|python_tag|>"};
  AppendNumbered("<|reserved_special_token_", 3, 247, &tokens);
  return tokens;
}

std::vector<std::string> QwenTokens() {
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  AppendNumbered("<|extra_", 0, 204, &tokens);
  return tokens;
}

std::vector<std::string> HarmonyTokens() {
  std::vector<std::string> tokens = {
      "<|startoftext|>", "<|endoftext|>", "<|reserved_200000|>", "<|reserved_200001|>",
      "<|return|>",      "<|constrain|>", "<|reserved_200004|>", "<|channel|>",
      "<|start|>",       "<|end|>",       "<|message|>"};
  AppendNumbered("<|reserved_", 200009, 200011, &tokens);
  tokens.emplace_back("<|call|>");
  AppendNumbered("<|reserved_", 200013, 200017, &tokens);
  tokens.emplace_back("<|endofprompt|>");
  AppendNumbered("<|reserved_", 200019, 201087, &tokens);
  return tokens;
}

std::vector<RankFamily> Families() {
  return {{.name = "GPT-2",
           .ranks = 50256,
           .pre_tokenizer = "gpt-2",
           .bos_text = "<|endoftext|>",
           .eos_text = "<|endoftext|>",
           .special_tokens = {"<|endoftext|>"}},
          {.name = "Llama 3",
           .ranks = 128000,
           .pre_tokenizer = "llama-bpe",
           .bos_text = "<|begin_of_text|>",
           .eos_text = "<|end_of_text|>",
           .adds_bos = true,
           .special_tokens = Llama3Tokens()},
          {.name = "Qwen",
           .ranks = 151643,
           .pre_tokenizer = "qwen2",
           .eos_text = "<|endoftext|>",
           .special_tokens = QwenTokens()},
          {.name = "o200k (gpt-oss)",
           .ranks = 199998,
           .pre_tokenizer = "gpt-4o",
           .bos_text = "<|startoftext|>",
           .eos_text = "<|endoftext|>",
           .special_tokens = HarmonyTokens()}};
}

std::string InByteAlphabet(absl::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    AppendUtf8(CharacterOfByte(static_cast<uint8_t>(byte)), &text);
  }
  return text;
}

std::vector<NamedTokenId> AddedTokensOf(const RankFamily& family, size_t ranks) {
  std::vector<NamedTokenId> tokens;
  for (size_t i = 0; i < family.special_tokens.size(); ++i) {
    tokens.push_back({static_cast<int64_t>(ranks + i), family.special_tokens[i], true});
  }
  return tokens;
}

absl::Status AddToken(const NamedTokenId& token, int64_t ranks, VocabularyData* data) {
  if (token.id < ranks || token.id >= ranks + kAddedTokensMax) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "added_tokens_decoder has the id %d; there are %d ranks, so wanted %d to %d", token.id,
        ranks, ranks, ranks + kAddedTokensMax - 1));
  }
  const auto index = static_cast<size_t>(token.id);
  if (index >= data->tokens.size()) {
    data->tokens.resize(index + 1);  // ids between are no tokens
    data->token_types.resize(index + 1, static_cast<int32_t>(TokenType::kUnused));
  }
  if (!data->tokens[index].empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("added_tokens_decoder has the id %d twice", token.id));
  }
  data->tokens[index] = token.text;
  data->token_types[index] =
      static_cast<int32_t>(token.is_special ? TokenType::kControl : TokenType::kUserDefined);
  return absl::OkStatus();
}

std::optional<int64_t> IdOf(absl::string_view text, const std::vector<NamedTokenId>& tokens) {
  for (const NamedTokenId& token : tokens) {
    if (!text.empty() && token.text == text) {
      return token.id;
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<RankFamily> FindRankFamily(size_t ranks) {
  std::vector<std::string> known;
  for (const RankFamily& family : Families()) {
    if (family.ranks == ranks) {
      return family;
    }
    known.push_back(absl::StrCat(family.ranks, " (", family.name, ")"));
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "a rank file of %d tokens; it does not say how a text is cut, and known by their number of "
      "tokens are %s only: take the model's tokenizer.json or a GGUF file instead",
      ranks, absl::StrJoin(known, ", ")));
}

absl::StatusOr<VocabularyData> MakeRankVocabulary(const std::vector<std::string>& tokens,
                                                  const RankFamily& family,
                                                  const TokenizerSettings& settings) {
  VocabularyData data;
  data.model = "gpt2";
  data.pre_tokenizer = std::string(family.pre_tokenizer);
  data.merges_by_id = true;
  data.ignore_merges = true;
  for (const std::string& token : tokens) {
    data.tokens.push_back(InByteAlphabet(token));
  }
  data.token_types.assign(tokens.size(), static_cast<int32_t>(TokenType::kNormal));
  const std::vector<NamedTokenId> added =
      settings.added_tokens.empty() ? AddedTokensOf(family, tokens.size()) : settings.added_tokens;
  for (const NamedTokenId& token : added) {
    RETURN_IF_ERROR(AddToken(token, static_cast<int64_t>(tokens.size()), &data));
  }
  data.bos_id = IdOf(settings.bos_text.empty() ? family.bos_text : settings.bos_text, added);
  data.eos_id = IdOf(settings.eos_text.empty() ? family.eos_text : settings.eos_text, added);
  data.add_bos = settings.add_bos.value_or(family.adds_bos) && data.bos_id.has_value();
  data.end_of_generation_ids = settings.end_of_generation_ids;
  data.chat_template = settings.chat_template;
  return data;
}

}  // namespace trireme::text
