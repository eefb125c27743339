#include "launcher/prompts.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/civil_time.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/tokenizer.h"

ABSL_FLAG(std::string, prompt, "",
          "text to continue, special tokens parsed, as in --prompt \"Once upon a time\"");
ABSL_FLAG(std::string, chat, "",
          "message of the user, through the model's chat template, as in --chat \"Hello\"");
ABSL_FLAG(std::string, system, "", "system message before --chat, as in --system \"Be brief.\"");
ABSL_FLAG(std::string, prompt_file, "",
          "file with the prompt, or a JSON list of strings or id lists: all as one batch");
ABSL_FLAG(std::string, token_ids, "", "the prompt as token ids, as in --token-ids 1,2,3");

namespace trireme::launcher {
namespace {

// A device or a pipe may never end.
constexpr size_t kFileBytesMax = size_t{256} << 20;
// Documents are walked recursively.
constexpr int kJsonDepthMax = 64;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

absl::Status ReadError(const std::string& path) {
  const std::string text = absl::StrFormat("%s: cannot be read: %s", path, std::strerror(errno));
  switch (errno) {
    case ENOENT:
      return absl::NotFoundError(text);
    case EACCES:
      return absl::PermissionDeniedError(text);
    default:
      return absl::InvalidArgumentError(text);
  }
}

absl::StatusOr<nlohmann::json> SplitTokenIds(const std::string& text) {
  nlohmann::json ids = nlohmann::json::array();
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t id = 0;
    if (!absl::SimpleAtoi(part, &id)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "--token-ids: \"%s\" is no token id; wanted numbers such as 1,2,3", part));
    }
    ids.push_back(id);
  }
  return ids;
}

absl::StatusOr<PromptChoice> ReadPromptFile(const std::string& path) {
  PromptChoice choice;
  ASSIGN_OR_RETURN(choice.text, ReadFile(path));
  const absl::string_view stripped = absl::StripLeadingAsciiWhitespace(choice.text);
  if (stripped.empty() || stripped[0] != '[') {
    return choice;
  }
  ASSIGN_OR_RETURN(choice.list, ReadJsonFile(path));
  choice.kind = PromptChoice::Kind::kList;
  if (choice.list.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the list is empty; wanted strings or lists of token ids"));
  }
  return choice;
}

absl::StatusOr<std::vector<int32_t>> TokenizeText(absl::string_view prompt,
                                                  const engine::ModelText& text) {
  if (text.tokenizer == nullptr) {
    return absl::InvalidArgumentError(
        "the model has no tokenizer: give --token-ids instead of text");
  }
  return text.tokenizer->Encode(prompt, text::SpecialTokens::kParse, text.tokenizer->adds_bos());
}

absl::StatusOr<std::vector<int32_t>> TokenizeEntry(const nlohmann::json& entry,
                                                   const engine::ModelText& text,
                                                   int64_t vocabulary, absl::string_view where) {
  if (entry.is_string()) {
    return TokenizeText(entry.get_ref<const std::string&>(), text);
  }
  return TokenIdsOf(entry, vocabulary, where);
}

}  // namespace

std::vector<const char*> PromptFlags() {
  return {"prompt", "chat", "system", "prompt_file", "token_ids"};
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) {
    return ReadError(path);
  }
  std::string bytes;
  std::array<char, 65536> chunk;
  while (const size_t count = std::fread(chunk.data(), 1, chunk.size(), file.get())) {
    if (bytes.size() + count > kFileBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: is larger than the limit of %d bytes", path, kFileBytesMax));
    }
    bytes.append(chunk.data(), count);
  }
  return std::ferror(file.get()) != 0 ? ReadError(path) : absl::StatusOr<std::string>(bytes);
}

absl::StatusOr<nlohmann::ordered_json> ReadJsonFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  using Json = nlohmann::ordered_json;
  bool is_too_deep = false;
  const auto check_depth = [&is_too_deep](int depth, Json::parse_event_t, const Json&) {
    is_too_deep = is_too_deep || depth > kJsonDepthMax;
    return !is_too_deep;
  };
  try {
    Json json = Json::parse(bytes, check_depth);
    if (is_too_deep) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: is nested deeper than %d levels", path, kJsonDepthMax));
    }
    return json;
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not valid JSON: ", error.what()));
  }
}

absl::StatusOr<std::vector<int32_t>> TokenIdsOf(const nlohmann::json& list, int64_t vocabulary,
                                                absl::string_view where) {
  if (!list.is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": wanted a list of token ids, found ", list.type_name()));
  }
  std::vector<int32_t> ids;
  for (const nlohmann::json& entry : list) {
    if (!entry.is_number_integer() || entry.get<int64_t>() < 0 ||
        entry.get<int64_t>() >= vocabulary) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: entry %d is %s; token ids of this model are 0 to %d", where, ids.size(),
          entry.is_number() ? entry.dump() : entry.type_name(), vocabulary - 1));
    }
    ids.push_back(entry.get<int32_t>());
  }
  return ids;
}

nlohmann::ordered_json ChatMessages(absl::string_view system, absl::string_view user) {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  if (!system.empty()) {
    messages.push_back({{"role", "system"}, {"content", std::string(system)}});
  }
  messages.push_back({{"role", "user"}, {"content", std::string(user)}});
  return messages;
}

absl::StatusOr<PromptChoice> ReadPromptFlags() {
  PromptChoice choice;
  const std::string prompt = absl::GetFlag(FLAGS_prompt);
  const std::string chat = absl::GetFlag(FLAGS_chat);
  const std::string file = absl::GetFlag(FLAGS_prompt_file);
  const std::string token_ids = absl::GetFlag(FLAGS_token_ids);
  const int given = !prompt.empty() + !chat.empty() + !file.empty() + !token_ids.empty();
  if (given != 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "give exactly one of --prompt, --chat, --prompt-file and --token-ids; found %d", given));
  }
  if (chat.empty() && !absl::GetFlag(FLAGS_system).empty()) {
    return absl::InvalidArgumentError("--system goes with --chat only");
  }
  if (!file.empty()) {
    return ReadPromptFile(file);
  }
  if (!chat.empty()) {
    choice.kind = PromptChoice::Kind::kMessages;
    choice.messages = ChatMessages(absl::GetFlag(FLAGS_system), chat);
  } else if (!token_ids.empty()) {
    choice.kind = PromptChoice::Kind::kTokenIds;
    ASSIGN_OR_RETURN(choice.list, SplitTokenIds(token_ids));
  } else {
    choice.text = prompt;
  }
  return choice;
}

absl::StatusOr<std::vector<int32_t>> TokenizeMessages(const nlohmann::ordered_json& messages,
                                                      const engine::ModelText& text) {
  if (text.chat_template == nullptr) {
    return absl::InvalidArgumentError(text.chat_template_status.message());
  }
  text::ChatInput input;
  input.messages = messages;
  input.add_generation_prompt = true;
  input.bos_token = text.bos_text;
  input.eos_token = text.eos_text;
  input.tool_arguments = text::ToolArguments::kParsedIfPossible;
  input.now = absl::ToCivilSecond(absl::Now(), absl::LocalTimeZone());
  ASSIGN_OR_RETURN(const text::RenderedPrompt rendered, text.chat_template->Render(input));
  std::vector<text::TextSegment> segments;
  for (const text::PromptSegment& segment : rendered.segments) {
    segments.push_back(
        {.text =
             absl::string_view(rendered.text).substr(segment.begin, segment.end - segment.begin),
         .trusted = segment.is_trusted});
  }
  return text.tokenizer->EncodeSegments(segments, text.tokenizer->adds_bos());
}

absl::StatusOr<std::vector<std::vector<int32_t>>> TokenizePrompts(const PromptChoice& choice,
                                                                  const engine::ModelText& text,
                                                                  int64_t vocabulary) {
  std::vector<std::vector<int32_t>> prompts;
  switch (choice.kind) {
    case PromptChoice::Kind::kText: {
      ASSIGN_OR_RETURN(prompts.emplace_back(), TokenizeText(choice.text, text));
      break;
    }
    case PromptChoice::Kind::kMessages: {
      ASSIGN_OR_RETURN(prompts.emplace_back(), TokenizeMessages(choice.messages, text));
      break;
    }
    case PromptChoice::Kind::kTokenIds: {
      ASSIGN_OR_RETURN(prompts.emplace_back(), TokenIdsOf(choice.list, vocabulary, "--token-ids"));
      break;
    }
    case PromptChoice::Kind::kList:
      for (const nlohmann::json& entry : choice.list) {
        const std::string where = absl::StrCat("--prompt-file: prompt ", prompts.size());
        ASSIGN_OR_RETURN(prompts.emplace_back(), TokenizeEntry(entry, text, vocabulary, where));
      }
      break;
  }
  return prompts;
}

}  // namespace trireme::launcher
