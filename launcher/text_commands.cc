// tokenize and detokenize: the text side of a model alone, without its weights.

#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/prompts.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model_text.h"
#include "runtime/text/detokenizer.h"
#include "runtime/text/tokenizer.h"

ABSL_DECLARE_FLAG(std::string, input);
ABSL_DECLARE_FLAG(std::string, model);
ABSL_FLAG(std::string, special, "parse",
          "parse: spellings of special tokens are those tokens; text: they are plain text; plain: "
          "so are those of all added tokens");
ABSL_FLAG(bool, no_bos, false,
          "leave out the tokens that the tokenizer puts around a text, such as the "
          "beginning-of-sequence token");
ABSL_FLAG(bool, skip_special, false, "leave special tokens out of the text");
ABSL_FLAG(bool, stream, false,
          "what a stream delivers after each token and at its end: {\"pieces\": [...], \"flush\": "
          "\"\"} instead of a text");
ABSL_FLAG(bool, continuation, false,
          "the ids follow others: keep the space that encoding puts before a whole text");

namespace trireme::launcher {
namespace {

using nlohmann::ordered_json;

ExitCode PrintJson(const ordered_json& json) {
  absl::PrintF("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return ExitCode::kOk;
}

absl::Status RequireFlag(const char* name, const std::string& value) {
  return value.empty() ? absl::InvalidArgumentError(absl::StrFormat("--%s is missing", name))
                       : absl::OkStatus();
}

// The list of a file that is a list, or an object with a list of cases.
absl::StatusOr<ordered_json> ReadList(const std::string& path) {
  ASSIGN_OR_RETURN(ordered_json json, ReadJsonFile(path));
  if (json.is_object() && json.contains("cases") && json["cases"].is_array()) {
    json = std::move(json["cases"]);
  }
  if (!json.is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": wanted a JSON list"));
  }
  return json;
}

// Opens --model and --input for a command that walks over a JSON list.
ExitCode WithListAndTokenizer(ExitCode (*run)(const ordered_json& list,
                                              const text::Tokenizer& tokenizer)) {
  const std::string model = absl::GetFlag(FLAGS_model);
  const std::string input = absl::GetFlag(FLAGS_input);
  for (const absl::Status& status : {RequireFlag("model", model), RequireFlag("input", input)}) {
    if (!status.ok()) {
      return Fail(ExitCode::kUsage, status);
    }
  }
  const auto list = ReadList(input);
  if (!list.ok()) {
    return Fail(ExitCodeOfFile(list.status()), list.status());
  }
  const auto text = engine::OpenModelText(model);
  if (!text.ok()) {
    return Fail(ExitCodeOfFile(text.status()), text.status());
  }
  if (text->tokenizer == nullptr) {
    return Fail(ExitCode::kBadCheckpoint,
                absl::InvalidArgumentError(absl::StrCat(model, ": the model has no tokenizer")));
  }
  return run(*list, *text->tokenizer);
}

// A string, {"text": "a string"}, or {"bytes_hex": "c328"} for bytes that JSON cannot hold.
absl::StatusOr<std::string> TextOf(const ordered_json& entry, size_t index) {
  if (entry.is_string()) {
    return entry.get<std::string>();
  }
  if (entry.is_object() && entry.contains("bytes_hex") && entry["bytes_hex"].is_string()) {
    const std::string& digits = entry["bytes_hex"].get_ref<const std::string&>();
    if (digits.size() % 2 == 0 &&
        digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos) {
      return absl::HexStringToBytes(digits);
    }
  }
  if (entry.is_object() && entry.contains("text") && entry["text"].is_string()) {
    return entry["text"].get<std::string>();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("--input: entry %d is no string but %s", index, entry.type_name()));
}

// The value of --special.
absl::StatusOr<text::SpecialTokens> SpecialTokensFlag() {
  const std::string special = absl::GetFlag(FLAGS_special);
  if (special == "parse") {
    return text::SpecialTokens::kParse;
  }
  if (special == "text") {
    return text::SpecialTokens::kAsText;
  }
  if (special == "plain") {
    return text::SpecialTokens::kAllAsText;
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("--special is \"%s\"; it must be parse, text or plain", special));
}

ExitCode Tokenize(const ordered_json& list, const text::Tokenizer& tokenizer) {
  const auto mode = SpecialTokensFlag();
  if (!mode.ok()) {
    return Fail(ExitCode::kUsage, mode.status());
  }
  const bool add_bos = !absl::GetFlag(FLAGS_no_bos);
  ordered_json all = ordered_json::array();
  for (const auto& entry : list) {
    const auto text = TextOf(entry, all.size());
    if (!text.ok()) {
      return Fail(ExitCode::kBadCheckpoint, text.status());
    }
    const auto ids = tokenizer.Encode(*text, *mode, add_bos);
    if (!ids.ok()) {
      return Fail(ExitCode::kBadCheckpoint, ids.status());
    }
    all.push_back(*ids);
  }
  return PrintJson(all);
}

ordered_json StreamOf(const text::Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                      text::SpecialTokenDisplay display, text::TextStart start) {
  text::Detokenizer detokenizer(&tokenizer, display, start);
  ordered_json pieces = ordered_json::array();
  for (const int32_t id : ids) {
    pieces.push_back(detokenizer.Append(id));
  }
  return {{"pieces", std::move(pieces)}, {"flush", detokenizer.Finish()}};
}

ExitCode Detokenize(const ordered_json& list, const text::Tokenizer& tokenizer) {
  const auto display = absl::GetFlag(FLAGS_skip_special) ? text::SpecialTokenDisplay::kHide
                                                         : text::SpecialTokenDisplay::kShow;
  const auto start =
      absl::GetFlag(FLAGS_continuation) ? text::TextStart::kContinuation : text::TextStart::kWhole;
  ordered_json all = ordered_json::array();
  for (const auto& entry : list) {
    const bool is_case = entry.is_object() && entry.contains("ids");
    const auto ids = TokenIdsOf(is_case ? entry["ids"] : entry, tokenizer.vocabulary_size(),
                                absl::StrCat("--input: list ", all.size()));
    if (!ids.ok()) {
      return Fail(ExitCode::kBadCheckpoint, ids.status());
    }
    if (absl::GetFlag(FLAGS_stream)) {
      all.push_back(StreamOf(tokenizer, *ids, display, start));
      continue;
    }
    const auto text = text::Decode(tokenizer, *ids, display, start);
    if (!text.ok()) {
      return Fail(ExitCode::kBadCheckpoint, text.status());
    }
    all.push_back(*text);
  }
  return PrintJson(all);
}

ExitCode RunTokenize(const std::vector<std::string>& /*words*/) {
  return WithListAndTokenizer(Tokenize);
}
ExitCode RunDetokenize(const std::vector<std::string>& /*words*/) {
  return WithListAndTokenizer(Detokenize);
}

}  // namespace

Subcommand TokenizeSubcommand() {
  return {.name = "tokenize",
          .summary = "Text to token ids: a JSON list of strings to a JSON list of id lists",
          .synopsis = "--model MODEL --input TEXTS.json [--special text] [--no-bos]",
          .example = "trireme tokenize --model model.gguf --input texts.json",
          .flags = {"model", "input", "special", "no_bos"},
          .words_max = 0,
          .run = RunTokenize};
}

Subcommand DetokenizeSubcommand() {
  return {.name = "detokenize",
          .summary = "Token ids to text: a JSON list of id lists to a JSON list of strings",
          .synopsis = "--model MODEL --input IDS.json [--skip-special] [--continuation] [--stream]",
          .example = "trireme detokenize --model model.gguf --input ids.json",
          .flags = {"model", "input", "skip_special", "continuation", "stream"},
          .words_max = 0,
          .run = RunDetokenize};
}

}  // namespace trireme::launcher
