// render: what a chat template makes of conversations, without a model's weights.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/civil_time.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/prompts.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model_text.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/jinja_json.h"

ABSL_DECLARE_FLAG(std::string, model);
ABSL_FLAG(std::string, input, "", "JSON file to read, as in --input texts.json");
ABSL_FLAG(std::string, template, "",
          "chat template in a file of its own instead of a model's, as in --template chat.jinja");

namespace trireme::launcher {
namespace {

using nlohmann::ordered_json;

// Where the template comes from, and what its model calls the special tokens.
struct TemplateSource {
  std::unique_ptr<text::ChatTemplate> chat_template;
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
};

// A conversation as `render` reads it.
struct Conversation {
  text::ChatInput input;
  std::optional<std::string> template_text;  // instead of --template's
};

// What a case of a list may have besides the conversation: notes of whoever wrote the list.
constexpr absl::string_view kCaseNotes[] = {"name",  "group",   "expected", "out",
                                            "error", "message", "library"};

absl::Status SetToken(const std::string& where, const ordered_json& value,
                      std::optional<std::string>* token) {
  if (!value.is_string() && !value.is_null()) {
    return absl::InvalidArgumentError(absl::StrCat(where, " is no string but ", value.type_name()));
  }
  *token = value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
  return absl::OkStatus();
}

absl::Status SetTime(const std::string& where, const ordered_json& value, absl::CivilSecond* now) {
  if (!value.is_string() || !absl::ParseCivilTime(value.get<std::string>(), now)) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, " is ", value.dump(), "; wanted a time such as 2025-01-31T12:34:56"));
  }
  return absl::OkStatus();
}

// True when `key` is one of the members that a conversation and the head of a list share.
absl::StatusOr<bool> SetShared(const std::string& key, const ordered_json& value,
                               const std::string& place, text::ChatInput* input) {
  if (key == "bos_token") {
    RETURN_IF_ERROR(SetToken(place, value, &input->bos_token));
  } else if (key == "eos_token") {
    RETURN_IF_ERROR(SetToken(place, value, &input->eos_token));
  } else if (key == "now") {
    RETURN_IF_ERROR(SetTime(place, value, &input->now));
  } else {
    return false;
  }
  return true;
}

// {"messages": [...], "tools": [...], "documents": [...], "add_generation_prompt": true,
// "continue_final_message": false, "bos_token": "<s>", "eos_token": "</s>", "now":
// "2025-01-31T12:34:56", "variables": {...}}; all may be absent, "vars" is the same as "variables",
// and what else there is are variables too, unless the conversation is one of a list.
absl::Status AddConversation(const ordered_json& json, const std::string& where, bool of_list,
                             Conversation* conversation) {
  if (!json.is_object() || (json.contains("messages") && !json["messages"].is_array())) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": wanted an object with a list \"messages\""));
  }
  text::ChatInput& input = conversation->input;
  for (const auto& [key, value] : json.items()) {
    const std::string place = absl::StrCat(where, ": ", key);
    ASSIGN_OR_RETURN(const bool is_shared, SetShared(key, value, place, &input));
    if (is_shared) {
      continue;
    }
    if (key == "messages") {
      input.messages = value;
    } else if (key == "tools") {
      input.tools = value;
    } else if (key == "documents") {
      input.documents = value;
    } else if (key == "add_generation_prompt" && value.is_boolean()) {
      input.add_generation_prompt = value.get<bool>();
    } else if (key == "continue_final_message" && value.is_boolean()) {
      input.continue_final_message = value.get<bool>();
    } else if ((key == "variables" || key == "vars") && value.is_object()) {
      input.variables.update(value);
    } else if (of_list && key == "template" && value.is_string()) {
      conversation->template_text = value.get<std::string>();
    } else if (!of_list || std::find(std::begin(kCaseNotes), std::end(kCaseNotes), key) ==
                               std::end(kCaseNotes)) {
      input.variables[key] = value;
    }
  }
  return absl::OkStatus();
}

// Numbers of any size, as templates print them.
absl::StatusOr<ordered_json> ReadTemplateValues(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  absl::StatusOr<ordered_json> json = text::jinja::ParseJson(bytes);
  return json.ok() ? std::move(json)
                   : absl::InvalidArgumentError(absl::StrCat(path, ": ", json.status().message()));
}

absl::StatusOr<TemplateSource> OpenTemplate(const std::string& template_path,
                                            const std::string& model_path) {
  TemplateSource source;
  if (!template_path.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(template_path));
    absl::StatusOr<std::unique_ptr<text::ChatTemplate>> parsed = text::ChatTemplate::Create(text);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(parsed.status().message());  // its limits are no memory
    }
    source.chat_template = *std::move(parsed);
    return source;
  }
  ASSIGN_OR_RETURN(engine::ModelText text, engine::OpenModelText(model_path));
  if (!text.chat_template_status.ok()) {
    return absl::DataLossError(text.chat_template_status.message());
  }
  source.chat_template = std::move(text.chat_template);
  source.bos_token = text.bos_text;
  source.eos_token = text.eos_text;
  return source;
}

absl::StatusOr<std::string> RenderText(const Conversation& conversation,
                                       const text::ChatTemplate* chat_template) {
  std::unique_ptr<text::ChatTemplate> own_template;
  if (conversation.template_text.has_value()) {
    ASSIGN_OR_RETURN(own_template, text::ChatTemplate::Create(*conversation.template_text));
    chat_template = own_template.get();
  }
  ASSIGN_OR_RETURN(text::RenderedPrompt prompt, chat_template->Render(conversation.input));
  return std::move(prompt.text);
}

// {"text": ...} or {"error": ...}, with the bare "message" too where the template itself refused.
ordered_json OutcomeOf(const absl::StatusOr<std::string>& text) {
  if (text.ok()) {
    return {{"text", *text}};
  }
  ordered_json outcome = {{"error", std::string(text.status().message())}};
  if (const auto refusal = text::RefusalMessage(text.status()); refusal.has_value()) {
    outcome["message"] = *refusal;
  }
  return outcome;
}

// A list of conversations, or {"cases": [...]} with what they share beside it. A template that
// cannot be parsed is an error of each case.
absl::StatusOr<ordered_json> RenderList(const ordered_json& json, const std::string& path,
                                        Conversation shared,
                                        const absl::StatusOr<TemplateSource>& source) {
  const ordered_json& list = json.is_array() ? json : json.at("cases");
  if (!list.is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": \"cases\" is no list"));
  }
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      const std::string place = absl::StrCat(path, ": ", key);
      RETURN_IF_ERROR(SetShared(key, value, place, &shared.input).status());
    }
  }
  ordered_json all = ordered_json::array();
  for (const ordered_json& entry : list) {
    Conversation conversation = shared;
    const std::string where = absl::StrFormat("%s: case %d", path, all.size());
    RETURN_IF_ERROR(AddConversation(entry, where, /*of_list=*/true, &conversation));
    const bool has_template = source.ok() || conversation.template_text.has_value();
    all.push_back(OutcomeOf(
        has_template ? RenderText(conversation, source.ok() ? source->chat_template.get() : nullptr)
                     : source.status()));
  }
  return all;
}

absl::StatusOr<std::string> Render(const std::string& input_path, const std::string& template_path,
                                   const std::string& model_path) {
  ASSIGN_OR_RETURN(const ordered_json json, ReadTemplateValues(input_path));
  const bool is_list = json.is_array() || (json.is_object() && json.contains("cases"));
  absl::StatusOr<TemplateSource> source = OpenTemplate(template_path, model_path);
  if (!source.ok() && !(is_list && source.status().code() == absl::StatusCode::kInvalidArgument)) {
    return source.status();
  }
  Conversation conversation;
  conversation.input.now = absl::ToCivilSecond(absl::Now(), absl::LocalTimeZone());
  if (source.ok()) {
    conversation.input.bos_token = source->bos_token;
    conversation.input.eos_token = source->eos_token;
  }
  if (is_list) {
    ASSIGN_OR_RETURN(const ordered_json all,
                     RenderList(json, input_path, std::move(conversation), source));
    return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  }
  RETURN_IF_ERROR(AddConversation(json, input_path, /*of_list=*/false, &conversation));
  absl::StatusOr<std::string> text = RenderText(conversation, source->chat_template.get());
  if (!text.ok()) {
    return absl::InvalidArgumentError(text.status().message());  // its limits are no memory
  }
  return text;
}

ExitCode RunRender(const std::vector<std::string>& /*words*/) {
  const std::string model = absl::GetFlag(FLAGS_model);
  const std::string template_path = absl::GetFlag(FLAGS_template);
  const std::string input = absl::GetFlag(FLAGS_input);
  if (model.empty() == template_path.empty()) {
    return Fail(ExitCode::kUsage,
                absl::InvalidArgumentError("give exactly one of --model and --template"));
  }
  if (input.empty()) {
    return Fail(ExitCode::kUsage, absl::InvalidArgumentError("--input is missing"));
  }
  const absl::StatusOr<std::string> text = Render(input, template_path, model);
  if (!text.ok()) {
    return Fail(ExitCodeOfFile(text.status()), text.status());
  }
  absl::PrintF("%s", *text);
  return ExitCode::kOk;
}

}  // namespace

Subcommand RenderSubcommand() {
  return {.name = "render",
          .summary =
              "Conversations to the prompt texts that a chat template makes of them: one, or "
              "a list of them to a JSON list of {\"text\"} or {\"error\"}",
          .synopsis = "(--model FILE | --template FILE.jinja) --input CHAT.json",
          .example = "trireme render --model model.gguf --input chat.json",
          .flags = {"model", "template", "input"},
          .words_max = 0,
          .run = RunRender};
}

}  // namespace trireme::launcher
