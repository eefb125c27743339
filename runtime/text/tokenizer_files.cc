#include "runtime/text/tokenizer_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/fingerprint.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/json_fields.h"
#include "runtime/text/rank_file.h"

namespace trireme::text {
namespace {

using nlohmann::json;

constexpr const char* kConfigFiles[] = {"tokenizer_config.json", "special_tokens_map.json"};
constexpr const char* kTemplateFile = "chat_template.jinja";
constexpr const char* kEndTokenFiles[] = {"generation_config.json", "config.json"};

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::string_view TextOf(const MappedFile& file) {
  return absl::string_view(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

bool IsFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

// The object in a JSON file; an empty one when there is no such file.
absl::StatusOr<json> ReadOptionalObject(const std::string& path) {
  if (!IsFile(path)) {
    return json::object();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  absl::StatusOr<json> parsed = ParseJsonFile(TextOf(*file));
  if (!parsed.ok()) {
    return InFile(path, parsed.status());
  }
  return parsed->is_object() ? std::move(parsed)
                             : InFile(path, absl::InvalidArgumentError("is no JSON object"));
}

// "<s>" or {"content": "<s>"}; anything else names no token.
void SetSpelling(const json& config, const char* key, std::string* spelling) {
  const auto member = config.find(key);
  if (member == config.end()) {
    return;
  }
  const json& value =
      member->is_object() && member->contains("content") ? (*member)["content"] : *member;
  if (value.is_string() && spelling->empty()) {
    *spelling = value.get<std::string>();
  }
}

// A string, or a list of {"name", "template"} of which "default" counts.
void SetTemplate(const json& config, std::string* chat_template) {
  const auto member = config.find("chat_template");
  if (member == config.end()) {
    return;
  }
  if (member->is_string()) {
    *chat_template = member->get<std::string>();
  }
  if (!member->is_array()) {
    return;
  }
  for (const json& entry : *member) {
    const bool is_default = entry.is_object() && entry.value("name", json()) == "default";
    if (is_default && entry.value("template", json()).is_string()) {
      *chat_template = entry["template"].get<std::string>();
    }
  }
}

// A number or a list of them.
absl::Status AddEndIds(const json& config, const std::string& path, std::vector<int64_t>* ids) {
  const auto member = config.find("eos_token_id");
  if (member == config.end() || member->is_null()) {
    return absl::OkStatus();
  }
  const json list = member->is_array() ? *member : json::array({*member});
  for (const json& id : list) {
    if (!id.is_number_integer()) {
      return InFile(path, absl::InvalidArgumentError(
                              absl::StrCat("eos_token_id is ", member->dump().substr(0, 60),
                                           "; wanted a token id or a list of them")));
    }
    ids->push_back(id.get<int64_t>());
  }
  return absl::OkStatus();
}

// {"128000": {"content": "<|begin_of_text|>", "special": true}, ...}
absl::Status SetAddedTokens(const json& config, const std::string& path,
                            std::vector<NamedTokenId>* tokens) {
  const auto member = config.find("added_tokens_decoder");
  if (member == config.end() || !member->is_object()) {
    return absl::OkStatus();
  }
  for (const auto& [key, value] : member->items()) {
    NamedTokenId token;
    if (!absl::SimpleAtoi(key, &token.id) || !value.is_object() ||
        !value.value("content", json()).is_string()) {
      return InFile(path, absl::InvalidArgumentError(absl::StrCat(
                              "added_tokens_decoder[\"", key.substr(0, 60),
                              "\"]: wanted a token id and an object with its \"content\"")));
    }
    token.text = value["content"].get<std::string>();
    token.is_special = value.value("special", json()) == true;
    tokens->push_back(std::move(token));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> CreateTokenizer(const std::string& path,
                                                           absl::string_view bytes,
                                                           const TokenizerSettings& settings) {
  const absl::string_view start = absl::StripLeadingAsciiWhitespace(bytes.substr(0, 1000));
  if (absl::EndsWith(path, ".json") || absl::StartsWith(start, "{")) {
    return Tokenizer::CreateFromJson(bytes, settings);
  }
  if (IsRankFile(bytes)) {
    return Tokenizer::CreateFromRanks(bytes, settings);
  }
  return Tokenizer::CreateFromPieces(bytes, settings);
}

}  // namespace

std::string FindTokenizerFile(const std::string& folder) {
  for (const char* name : {"tokenizer.json", "tokenizer.model", "tiktoken.model"}) {
    const std::string path = absl::StrCat(folder, "/", name);
    if (IsFile(path)) {
      return path;
    }
  }
  std::error_code error;
  std::vector<std::string> rank_files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".tiktoken" && IsFile(entry.path().string())) {
      rank_files.push_back(entry.path().string());
    }
  }
  return rank_files.empty() ? std::string()
                            : *std::min_element(rank_files.begin(), rank_files.end());
}

absl::StatusOr<TokenizerSettings> ReadTokenizerSettings(const std::string& folder) {
  TokenizerSettings settings;
  for (const char* name : kConfigFiles) {
    ASSIGN_OR_RETURN(const json config, ReadOptionalObject(absl::StrCat(folder, "/", name)));
    SetSpelling(config, "bos_token", &settings.bos_text);
    SetSpelling(config, "eos_token", &settings.eos_text);
    SetTemplate(config, &settings.chat_template);
    RETURN_IF_ERROR(
        SetAddedTokens(config, absl::StrCat(folder, "/", name), &settings.added_tokens));
    if (config.contains("add_bos_token") && config["add_bos_token"].is_boolean()) {
      settings.add_bos = config["add_bos_token"].get<bool>();
    }
  }
  const std::string template_path = absl::StrCat(folder, "/", kTemplateFile);
  if (IsFile(template_path)) {
    ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(template_path));
    settings.chat_template = std::string(TextOf(*file));
  }
  for (const char* name : kEndTokenFiles) {
    const std::string path = absl::StrCat(folder, "/", name);
    ASSIGN_OR_RETURN(const json config, ReadOptionalObject(path));
    RETURN_IF_ERROR(AddEndIds(config, path, &settings.end_of_generation_ids));
    if (!settings.end_of_generation_ids.empty()) {
      break;
    }
  }
  return settings;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(const std::string& path) {
  std::error_code error;
  std::string file_path = path;
  TokenizerSettings settings;
  if (std::filesystem::is_directory(path, error)) {
    file_path = FindTokenizerFile(path);
    if (file_path.empty()) {
      return absl::NotFoundError(absl::StrCat(
          path, ": has no tokenizer.json, no tokenizer.model and no rank file (*.tiktoken)"));
    }
    ASSIGN_OR_RETURN(settings, ReadTokenizerSettings(path));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(file_path));
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      CreateTokenizer(file_path, TextOf(*file), settings);
  return tokenizer.ok() ? std::move(tokenizer) : InFile(file_path, tokenizer.status());
}

absl::StatusOr<uint64_t> FingerprintTokenizerFiles(const std::string& folder) {
  std::vector<std::string> paths = {FindTokenizerFile(folder),
                                    absl::StrCat(folder, "/", kTemplateFile)};
  for (const char* name : kConfigFiles) {
    paths.push_back(absl::StrCat(folder, "/", name));
  }
  for (const char* name : kEndTokenFiles) {
    paths.push_back(absl::StrCat(folder, "/", name));
  }
  Fingerprint hash;
  for (const std::string& path : paths) {
    if (!IsFile(path)) {
      continue;
    }
    ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
    hash.Add(std::filesystem::path(path).filename().string());
    hash.Add(file->size_bytes());
    hash.Add(TextOf(*file));
  }
  return hash.value();
}

}  // namespace trireme::text
