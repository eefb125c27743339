#include "runtime/engine/model_text.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/tokenizer_files.h"
#include "runtime/weights/gguf_metadata.h"

namespace trireme::engine {
namespace {

constexpr char kPrefix[] = "tokenizer.ggml.";

std::string KeyOf(absl::string_view name) { return absl::StrCat(kPrefix, name); }

absl::Status ReadId(const weights::GgufMetadata& metadata, absl::string_view name,
                    std::optional<int64_t>* id) {
  const std::string key = KeyOf(name);
  if (metadata.Has(key)) {
    ASSIGN_OR_RETURN(*id, metadata.GetInteger(key));
  }
  return absl::OkStatus();
}

absl::Status ReadFlag(const weights::GgufMetadata& metadata, absl::string_view name,
                      std::optional<bool>* flag) {
  const std::string key = KeyOf(name);
  if (metadata.Has(key)) {
    ASSIGN_OR_RETURN(*flag, metadata.GetBool(key));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ReadStrings(const weights::GgufMetadata& metadata,
                                                     const std::string& key) {
  ASSIGN_OR_RETURN(const std::vector<absl::string_view> views, metadata.GetStringArray(key));
  return std::vector<std::string>(views.begin(), views.end());
}

absl::Status ReadLists(const weights::GgufMetadata& metadata, text::VocabularyData* data) {
  ASSIGN_OR_RETURN(data->tokens, ReadStrings(metadata, KeyOf("tokens")));
  if (metadata.Has(KeyOf("token_type"))) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> types,
                     metadata.GetIntegerArray(KeyOf("token_type"), {INT32_MIN, INT32_MAX}));
    data->token_types.assign(types.begin(), types.end());
  }
  if (metadata.Has(KeyOf("scores"))) {
    ASSIGN_OR_RETURN(data->scores, metadata.GetFloatArray(KeyOf("scores")));
  }
  if (metadata.Has(KeyOf("merges"))) {
    ASSIGN_OR_RETURN(data->merges, ReadStrings(metadata, KeyOf("merges")));
  }
  return absl::OkStatus();
}

absl::Status ReadIds(const weights::GgufMetadata& metadata, text::VocabularyData* data) {
  RETURN_IF_ERROR(ReadId(metadata, "bos_token_id", &data->bos_id));
  RETURN_IF_ERROR(ReadId(metadata, "eos_token_id", &data->eos_id));
  RETURN_IF_ERROR(ReadId(metadata, "eot_token_id", &data->eot_id));
  RETURN_IF_ERROR(ReadId(metadata, "eom_token_id", &data->eom_id));
  RETURN_IF_ERROR(ReadId(metadata, "unknown_token_id", &data->unknown_id));
  RETURN_IF_ERROR(ReadId(metadata, "padding_token_id", &data->padding_id));
  for (const char* name : {"fim_pad_token_id", "fim_rep_token_id", "fim_sep_token_id"}) {
    std::optional<int64_t> id;
    RETURN_IF_ERROR(ReadId(metadata, name, &id));
    if (id.has_value()) {
      data->fill_in_middle_ids.push_back(*id);
    }
  }
  RETURN_IF_ERROR(ReadFlag(metadata, "add_bos_token", &data->add_bos));
  return ReadFlag(metadata, "add_space_prefix", &data->add_space_prefix);
}

// No tokenizer, or llama.cpp's words for none.
bool SpeaksInIds(const weights::GgufMetadata& metadata) {
  if (!metadata.Has(KeyOf("model"))) {
    return true;
  }
  const absl::StatusOr<absl::string_view> model = metadata.GetString(KeyOf("model"));
  return model.ok() && (*model == "no_vocab" || *model == "none");
}

// A vocabulary alone has no embedding; one that has another number of rows is the file's fault.
absl::Status CheckEmbedding(const weights::GgufFile& file, int64_t tokens) {
  const weights::GgufTensor* const embedding = file.FindTensor("token_embd.weight");
  if (embedding == nullptr || embedding->dimensions[1] == tokens) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %s has %d tokens; token_embd.weight has %d rows", file.name(),
                      KeyOf("tokens"), tokens, embedding->dimensions[1]));
}

absl::Status NoTemplate(absl::string_view name) {
  return absl::NotFoundError(
      absl::StrCat(name, ": the model has no chat template; give a prompt instead of messages"));
}

// What a model's tokenizer says, with its chat template; `name` stands in errors.
ModelText TextOf(std::unique_ptr<text::Tokenizer> tokenizer, absl::string_view name) {
  ModelText result;
  result.chat_template_status = NoTemplate(name);
  if (tokenizer->bos_id().has_value()) {
    result.bos_text = std::string(tokenizer->TokenText(*tokenizer->bos_id()));
  }
  if (tokenizer->eos_id().has_value()) {
    result.eos_text = std::string(tokenizer->TokenText(*tokenizer->eos_id()));
  }
  if (!tokenizer->chat_template().empty()) {
    absl::StatusOr<std::unique_ptr<text::ChatTemplate>> chat_template =
        text::ChatTemplate::Create(tokenizer->chat_template());
    result.chat_template_status = chat_template.status();
    if (chat_template.ok()) {
      result.chat_template = *std::move(chat_template);
    }
  }
  result.tokenizer = std::move(tokenizer);
  return result;
}

bool HasGgufMagic(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  file.read(magic, sizeof(magic));
  return file.gcount() == sizeof(magic) && absl::string_view(magic, sizeof(magic)) == "GGUF";
}

// The GGUF file that `path` is, or holds when it is a folder without another tokenizer; empty when
// there is none.
absl::StatusOr<std::string> FindGguf(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const bool is_file = fs::is_regular_file(path, error);
    const bool is_gguf = !fs::exists(path, error) || absl::EndsWith(path, ".gguf") ||
                         (is_file && HasGgufMagic(path));
    return is_gguf ? path : std::string();
  }
  if (!text::FindTokenizerFile(path).empty()) {
    return std::string();
  }
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".gguf") {
      files.push_back(entry.path().string());
    }
  }
  return files.empty() ? std::string() : *std::min_element(files.begin(), files.end());
}

bool IsAboutContent(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument ||
         status.code() == absl::StatusCode::kUnimplemented ||
         status.code() == absl::StatusCode::kResourceExhausted;
}

}  // namespace

absl::StatusOr<text::VocabularyData> ReadVocabulary(const weights::GgufFile& file) {
  const weights::GgufMetadata& metadata = file.metadata();
  text::VocabularyData data;
  if (metadata.Has("general.name")) {
    // Not worth refusing a model for.
    const absl::StatusOr<absl::string_view> name = metadata.GetString("general.name");
    data.model_name = name.ok() ? std::string(*name) : std::string();
  }
  ASSIGN_OR_RETURN(const absl::string_view model, metadata.GetString(KeyOf("model")));
  data.model = std::string(model);
  if (metadata.Has(KeyOf("pre"))) {
    ASSIGN_OR_RETURN(const absl::string_view pre, metadata.GetString(KeyOf("pre")));
    data.pre_tokenizer = std::string(pre);
  }
  RETURN_IF_ERROR(ReadLists(metadata, &data));
  RETURN_IF_ERROR(ReadIds(metadata, &data));
  if (metadata.Has("tokenizer.chat_template")) {
    ASSIGN_OR_RETURN(const absl::string_view chat_template,
                     metadata.GetString("tokenizer.chat_template"));
    data.chat_template = std::string(chat_template);
  }
  return data;
}

absl::StatusOr<ModelText> ReadModelText(const weights::GgufFile& file) {
  const weights::GgufMetadata& metadata = file.metadata();
  if (!metadata.Has(KeyOf("tokens")) && SpeaksInIds(metadata)) {
    return ModelText{.chat_template_status = NoTemplate(file.name())};
  }
  ASSIGN_OR_RETURN(text::VocabularyData data, ReadVocabulary(file));
  RETURN_IF_ERROR(CheckEmbedding(file, static_cast<int64_t>(data.tokens.size())));
  absl::StatusOr<std::unique_ptr<text::Tokenizer>> tokenizer =
      text::Tokenizer::Create(std::move(data));
  if (!tokenizer.ok()) {
    return absl::Status(tokenizer.status().code(),
                        absl::StrCat(file.name(), ": ", tokenizer.status().message()));
  }
  return TextOf(*std::move(tokenizer), file.name());
}

absl::StatusOr<ModelText> OpenModelText(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string file_path, FindGguf(path));
  if (file_path.empty()) {
    absl::StatusOr<std::unique_ptr<text::Tokenizer>> tokenizer = text::OpenTokenizer(path);
    if (!tokenizer.ok()) {
      return IsAboutContent(tokenizer.status()) ? absl::DataLossError(tokenizer.status().message())
                                                : tokenizer.status();
    }
    return TextOf(*std::move(tokenizer), path);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<weights::GgufFile> file,
                   weights::GgufFile::Open(file_path));
  absl::StatusOr<ModelText> text = ReadModelText(*file);
  return text.ok() ? std::move(text) : absl::DataLossError(text.status().message());
}

}  // namespace trireme::engine
