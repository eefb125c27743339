#include "runtime/text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"
#include "runtime/text/byte_level_encoder.h"
#include "runtime/text/json_pipeline.h"
#include "runtime/text/piece_file.h"
#include "runtime/text/piece_file_pipeline.h"
#include "runtime/text/pre_tokenizer_families.h"
#include "runtime/text/rank_file.h"
#include "runtime/text/rank_vocabulary.h"
#include "runtime/text/sentence_piece_encoder.h"
#include "runtime/text/utf8.h"
#include "runtime/text/vocabulary_pipeline.h"

namespace trireme::text {
namespace {

constexpr absl::string_view kByteLevelModel = "gpt2";
constexpr absl::string_view kSentencePieceModel = "llama";

// Positions are 32 bits wide; a text near this size is a mistake anyway.
constexpr size_t kTextBytesMax = size_t{1} << 30;

absl::Status UnknownModel(absl::string_view model) {
  for (const absl::string_view known : {"bert", "t5", "rwkv", "plamo2", "gemma4"}) {
    if (model == known) {
      return absl::UnimplementedError(
          absl::StrCat("tokenizer.ggml.model: tokenizers of kind '", model,
                       "' are not built into Trireme; built in are gpt2 and llama"));
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("tokenizer.ggml.model: ", model.empty() ? "missing" : "unknown kind '",
                   model.substr(0, 100), model.empty() ? "" : "'", "; known are gpt2 and llama"));
}

void AppendValid(absl::string_view text, std::string* joined) {
  if (IsValidUtf8(text)) {
    absl::StrAppend(joined, text);
  } else {
    absl::StrAppend(joined, ReplaceInvalidSubparts(text));
  }
}

absl::Status CheckSize(size_t bytes) {
  if (bytes < kTextBytesMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "the text to tokenize has %d bytes; fewer than %d are possible", bytes, kTextBytesMax));
}

Trust TrustOf(SpecialTokens special_tokens) {
  switch (special_tokens) {
    case SpecialTokens::kParse:
      return Trust::kParsed;
    case SpecialTokens::kAsText:
      return Trust::kText;
    case SpecialTokens::kAllAsText:
      return Trust::kPlain;
  }
  return Trust::kPlain;
}

// The vocabulary of a file that names its special tokens by their spellings, elsewhere. A token
// before every text is the first one of a sequence, unless another is named.
absl::StatusOr<std::unique_ptr<Vocabulary>> MakeVocabulary(VocabularyData data,
                                                           const TokenizerSettings& settings,
                                                           const SurroundingTokens& around,
                                                           const VocabularyDefaults& defaults) {
  const auto find = [&data](const std::string& spelling) -> std::optional<int64_t> {
    const auto token = std::find(data.tokens.begin(), data.tokens.end(), spelling);
    return spelling.empty() || token == data.tokens.end()
               ? std::nullopt
               : std::optional<int64_t>(token - data.tokens.begin());
  };
  data.bos_id = find(settings.bos_text);
  if (!data.bos_id.has_value() && !around.prefix_ids.empty()) {
    data.bos_id = around.prefix_ids.front();
  }
  data.eos_id = find(settings.eos_text);
  data.end_of_generation_ids = settings.end_of_generation_ids;
  data.chat_template = settings.chat_template;
  return Vocabulary::Create(std::move(data), defaults);
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<Vocabulary> vocabulary, std::unique_ptr<TextPipeline> pipeline)
    : vocabulary_(std::move(vocabulary)), pipeline_(std::move(pipeline)) {
  token_bytes_.reserve(static_cast<size_t>(vocabulary_size()));
  for (int32_t id = 0; id < vocabulary_size(); ++id) {
    token_bytes_.push_back(pipeline_->BytesOf(id, /*is_first=*/false));
  }
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(VocabularyData data) {
  const bool byte_level = data.model == kByteLevelModel;
  if (!byte_level && data.model != kSentencePieceModel) {
    return UnknownModel(data.model);
  }
  PreTokenizerFamily family;
  VocabularyDefaults defaults = {.bos_id = 1, .eos_id = 2, .unknown_id = 0, .add_bos = true};
  if (byte_level) {
    ASSIGN_OR_RETURN(family, FindPreTokenizerFamily(data.pre_tokenizer));
    defaults = {.add_bos = family.traits.adds_bos};
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Vocabulary> vocabulary,
                   Vocabulary::Create(std::move(data), defaults));
  std::unique_ptr<TextEncoder> encoder;
  bool adds_space_prefix = false;
  if (byte_level) {
    ASSIGN_OR_RETURN(encoder, ByteLevelEncoder::Create(*vocabulary, family));
  } else {
    ASSIGN_OR_RETURN(encoder, SentencePieceEncoder::Create(*vocabulary));
    adds_space_prefix = vocabulary->data().add_space_prefix.value_or(true);
  }
  auto pipeline =
      std::make_unique<VocabularyPipeline>(*vocabulary, std::move(encoder), adds_space_prefix);
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(vocabulary), std::move(pipeline)));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::CreateFromJson(
    absl::string_view file, const TokenizerSettings& settings) {
  ASSIGN_OR_RETURN(std::unique_ptr<JsonPipeline> pipeline,
                   JsonPipeline::Create(file, settings.chat_template));
  VocabularyData data;
  data.tokens = pipeline->tokens();
  data.token_types.assign(data.tokens.size(), static_cast<int32_t>(TokenType::kNormal));
  for (const AddedToken& token : pipeline->added_tokens()) {
    data.token_types[static_cast<size_t>(token.id)] = static_cast<int32_t>(
        pipeline->IsHidden(token) ? TokenType::kControl : TokenType::kUserDefined);
  }
  data.unknown_id = pipeline->unknown_id();
  ASSIGN_OR_RETURN(std::unique_ptr<Vocabulary> vocabulary,
                   MakeVocabulary(std::move(data), settings, pipeline->surrounding_tokens(),
                                  VocabularyDefaults()));
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(vocabulary), std::move(pipeline)));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::CreateFromPieces(
    absl::string_view file, const TokenizerSettings& settings) {
  ASSIGN_OR_RETURN(const PieceFile pieces, ReadPieceFile(file));
  VocabularyData data;
  data.tokens = pieces.pieces;
  data.token_types = pieces.token_types;
  data.scores = pieces.scores;
  data.unknown_id = pieces.unknown_id;
  data.add_space_prefix = false;  // the file's normalizer adds it
  data.add_bos = settings.add_bos.value_or(false) && pieces.bos_id >= 0;
  const auto count = static_cast<int64_t>(pieces.pieces.size());
  VocabularyDefaults defaults;
  defaults.bos_id = pieces.bos_id >= 0 ? std::optional<int64_t>(pieces.bos_id) : std::nullopt;
  defaults.eos_id = pieces.eos_id >= 0 ? std::optional<int64_t>(pieces.eos_id) : std::nullopt;
  if (pieces.bos_id >= count || pieces.eos_id >= count) {
    return absl::InvalidArgumentError(
        absl::StrFormat("bos_id is %d and eos_id %d; the model has the pieces 0 to %d",
                        pieces.bos_id, pieces.eos_id, count - 1));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Vocabulary> vocabulary,
                   MakeVocabulary(std::move(data), settings, SurroundingTokens(), defaults));
  ASSIGN_OR_RETURN(std::unique_ptr<PieceFilePipeline> pipeline,
                   PieceFilePipeline::Create(pieces, *vocabulary));
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(vocabulary), std::move(pipeline)));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::CreateFromRanks(
    absl::string_view file, const TokenizerSettings& settings) {
  ASSIGN_OR_RETURN(const std::vector<std::string> tokens, ReadRankFile(file));
  ASSIGN_OR_RETURN(const RankFamily family, FindRankFamily(tokens.size()));
  ASSIGN_OR_RETURN(VocabularyData data, MakeRankVocabulary(tokens, family, settings));
  return Create(std::move(data));
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(absl::string_view text,
                                                       SpecialTokens special_tokens,
                                                       bool add_bos) const {
  RETURN_IF_ERROR(CheckSize(text.size()));
  std::string replaced;
  if (!IsValidUtf8(text)) {
    replaced = ReplaceInvalidSubparts(text);
    RETURN_IF_ERROR(CheckSize(replaced.size()));
    text = replaced;
  }
  std::vector<int32_t> ids;
  const SurroundingTokens& around = pipeline_->surrounding_tokens();
  if (add_bos) {
    ids = around.prefix_ids;
  }
  const TextSource source = {text.size(), TrustOf(special_tokens)};
  RETURN_IF_ERROR(pipeline_->Encode(text, absl::MakeConstSpan(&source, 1), &ids));
  if (add_bos) {
    ids.insert(ids.end(), around.suffix_ids.begin(), around.suffix_ids.end());
  }
  return ids;
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::EncodeSegments(
    absl::Span<const TextSegment> segments, bool add_bos) const {
  std::string joined;
  std::vector<TextSource> sources;
  for (const TextSegment& segment : segments) {
    RETURN_IF_ERROR(CheckSize(joined.size() + segment.text.size()));
    AppendValid(segment.text, &joined);
    if (!segment.text.empty()) {
      sources.push_back({joined.size(), segment.trusted ? Trust::kTemplate : Trust::kUser});
    }
  }
  RETURN_IF_ERROR(CheckSize(joined.size()));
  std::vector<int32_t> ids;
  RETURN_IF_ERROR(pipeline_->Encode(joined, sources, &ids));
  const std::vector<int32_t>& prefix = pipeline_->surrounding_tokens().prefix_ids;
  const bool has_prefix =
      ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
  if (add_bos && !has_prefix) {
    ids.insert(ids.begin(), prefix.begin(), prefix.end());
  }
  return ids;
}

absl::string_view Tokenizer::TokenText(int32_t id) const {
  return id >= 0 && id < vocabulary_size() ? absl::string_view(vocabulary_->Text(id))
                                           : absl::string_view();
}

absl::string_view Tokenizer::TokenBytes(int32_t id) const {
  return id >= 0 && id < vocabulary_size() ? token_bytes_[static_cast<size_t>(id)]
                                           : absl::string_view();
}

std::string Tokenizer::FirstTokenBytes(int32_t id) const {
  return id >= 0 && id < vocabulary_size() ? pipeline_->BytesOf(id, /*is_first=*/true)
                                           : std::string();
}

bool Tokenizer::IsEndOfGeneration(int32_t id) const {
  const absl::Span<const int32_t> ids = end_of_generation_ids();
  return std::binary_search(ids.begin(), ids.end(), id);
}

bool Tokenizer::IsControl(int32_t id) const {
  if (id < 0 || id >= vocabulary_size()) {
    return false;
  }
  const TokenType type = vocabulary_->Type(id);
  return type == TokenType::kControl ||
         (type == TokenType::kUnknown && !decode_rules().shows_unknown);
}

}  // namespace trireme::text
