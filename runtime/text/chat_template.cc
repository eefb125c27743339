#include "runtime/text/chat_template.h"

#include <algorithm>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_functions.h"
#include "runtime/text/jinja_interpreter.h"
#include "runtime/text/jinja_json.h"
#include "runtime/text/jinja_parser.h"
#include "runtime/text/jinja_strings.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text {
namespace {

using jinja::FromAbseil;
using jinja::FromJson;
using jinja::Interpreter;
using jinja::Joined;
using jinja::Map;
using jinja::Origin;
using jinja::ParseJson;
using jinja::Runtime;
using jinja::StringData;
using jinja::StringFlavor;
using jinja::StripRange;
using jinja::StripSpace;
using jinja::TracedText;
using jinja::Value;
using nlohmann::ordered_json;

// Roles that are part of the usual format. Some templates build their turn tokens out of the role
// ("<|" + role + "|>"), so these names count as the template's own text; any other role is the
// user's.
constexpr std::string_view kKnownRoles[] = {"system",    "user",  "assistant", "tool",
                                            "developer", "model", "function",  "ipython"};

// Marks where a message that is to be continued ends. The space shows whether the template trims
// its content.
constexpr std::string_view kContinueMarker = "CONTINUE_FINAL_MESSAGE_TAG ";
constexpr std::string_view kContinueMarkerTrimmed =
    kContinueMarker.substr(0, kContinueMarker.size() - 1);

bool IsKnownRole(const ordered_json& role) {
  return role.is_string() && std::find(std::begin(kKnownRoles), std::end(kKnownRoles),
                                       role.get_ref<const std::string&>()) != std::end(kKnownRoles);
}

// Reasoning travels under three names; templates know one of two.
void AddReasoning(const ordered_json& message, Map& map) {
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const auto found = message.find(name);
    if (found == message.end() || found->is_null()) {
      continue;
    }
    const Value reasoning = *map.Find(name);
    for (const char* wanted : {"reasoning_content", "thinking"}) {
      if (map.Find(wanted) == nullptr) {
        map.AppendNew(Value::Of(std::make_shared<const StringData>(
                          StringData{TracedText(wanted, Origin::kTrusted), StringFlavor::kPlain})),
                      reasoning);
      }
    }
    return;
  }
}

absl::StatusOr<Value> ConvertMessage(Runtime& runtime, const ordered_json& message) {
  ASSIGN_OR_RETURN(Map * map, runtime.NewMap());
  for (const auto& [name, member] : message.get_ref<const ordered_json::object_t&>()) {
    if (member.is_null()) {
      continue;
    }
    const bool is_known_role = name == "role" && IsKnownRole(member);
    ASSIGN_OR_RETURN(Value key, FromJson(runtime, name, Origin::kUntrusted));
    ASSIGN_OR_RETURN(Value value, FromJson(runtime, member,
                                           is_known_role ? Origin::kTrusted : Origin::kUntrusted));
    map->AppendNew(std::move(key), std::move(value));
  }
  AddReasoning(message, *map);
  return Value::Of(map);
}

absl::StatusOr<Value> ConvertMessages(Runtime& runtime, const ordered_json& messages) {
  if (!messages.is_array()) {
    return absl::InvalidArgumentError(
        Joined("messages must be a list of objects, not ", messages.type_name()));
  }
  std::vector<Value> converted;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_object()) {
      return absl::InvalidArgumentError(
          Joined("messages[", i, "] must be an object, not ", messages[i].type_name()));
    }
    absl::StatusOr<Value> message = ConvertMessage(runtime, messages[i]);
    if (!message.ok()) {
      return absl::Status(message.status().code(),
                          Joined("messages[", i, "]: ", message.status().message()));
    }
    converted.push_back(*std::move(message));
  }
  return runtime.List(std::move(converted));
}

absl::StatusOr<Value> ConvertNamed(Runtime& runtime, std::string_view name,
                                   const ordered_json& document, Origin origin) {
  absl::StatusOr<Value> value = FromJson(runtime, document, origin);
  if (!value.ok()) {
    return absl::Status(value.status().code(), Joined(name, ": ", value.status().message()));
  }
  return value;
}

absl::Status SetVariables(const ChatInput& input, const ordered_json& messages, Runtime& runtime,
                          Interpreter& interpreter) {
  ASSIGN_OR_RETURN(Value message_list, ConvertMessages(runtime, messages));
  interpreter.SetVariable("messages", std::move(message_list));
  ASSIGN_OR_RETURN(Value tools, ConvertNamed(runtime, "tools", input.tools, Origin::kUntrusted));
  interpreter.SetVariable("tools", std::move(tools));
  ASSIGN_OR_RETURN(Value documents,
                   ConvertNamed(runtime, "documents", input.documents, Origin::kUntrusted));
  interpreter.SetVariable("documents", std::move(documents));
  interpreter.SetVariable("add_generation_prompt", Value::Boolean(input.add_generation_prompt));
  for (const auto& [name, token] :
       {std::pair("bos_token", &input.bos_token), std::pair("eos_token", &input.eos_token)}) {
    if (token->has_value()) {
      ASSIGN_OR_RETURN(Value text, ConvertNamed(runtime, name, **token, Origin::kTrusted));
      interpreter.SetVariable(name, std::move(text));
    }
  }
  if (!input.variables.is_object()) {
    return absl::InvalidArgumentError(
        Joined("template variables must be an object, not ", input.variables.type_name()));
  }
  for (const auto& [name, document] : input.variables.get_ref<const ordered_json::object_t&>()) {
    ASSIGN_OR_RETURN(Value value, ConvertNamed(runtime, Joined("template variable '", name, "'"),
                                               document, Origin::kUntrusted));
    interpreter.SetVariable(name, std::move(value));
  }
  return absl::OkStatus();
}

// Puts the marker behind the last message's text and returns that text.
absl::StatusOr<std::string> MarkFinalMessage(ordered_json& messages) {
  if (!messages.is_array() || messages.empty() || !messages.back().is_object() ||
      !messages.back().contains("content")) {
    return absl::InvalidArgumentError(
        "continue_final_message needs a last message with content; there is none");
  }
  ordered_json* content = &messages.back()["content"];
  if (content->is_array()) {
    const auto part =
        std::find_if(content->rbegin(), content->rend(), [](const ordered_json& item) {
          return item.is_object() && item.contains("text") && item["text"].is_string();
        });
    content = part == content->rend() ? nullptr : &(*part)["text"];
  }
  if (content == nullptr || !content->is_string()) {
    return absl::InvalidArgumentError(
        "continue_final_message needs text in the last message; its content has none");
  }
  std::string& text = content->get_ref<std::string&>();
  std::string original = text;
  text.append(kContinueMarker);
  return original;
}

// Cuts the prompt where the marked message ends.
absl::StatusOr<TracedText> CutAtMarker(const TracedText& prompt, const std::string& message) {
  const std::string_view bytes = prompt.bytes();
  const StripRange core = StripSpace(message, /*left=*/true, /*right=*/true);
  const size_t marker = bytes.rfind(kContinueMarkerTrimmed);
  const bool has_message = bytes.find(std::string_view(message).substr(
                               core.begin, core.end - core.begin)) != std::string_view::npos;
  if (marker == std::string_view::npos || !has_message) {
    return absl::InvalidArgumentError(
        "continue_final_message: the template does not write the last message as it is, so there "
        "is "
        "no place to continue from");
  }
  if (bytes.substr(marker, kContinueMarker.size()) == kContinueMarker) {
    return prompt.Slice(0, marker);
  }
  return prompt.Slice(0, StripSpace(bytes.substr(0, marker), /*left=*/false, /*right=*/true).end);
}

// The messages with every tool call's arguments read as JSON where they are a string of an object;
// true if any was.
bool ParseToolArguments(ordered_json& messages) {
  bool has_changed = false;
  if (!messages.is_array()) {
    return false;
  }
  for (ordered_json& message : messages) {
    if (!message.is_object() || !message.contains("tool_calls") ||
        !message["tool_calls"].is_array()) {
      continue;
    }
    for (ordered_json& call : message["tool_calls"]) {
      const bool has_function =
          call.is_object() && call.contains("function") && call["function"].is_object();
      ordered_json& target = has_function ? call["function"] : call;
      if (!target.is_object() || !target.contains("arguments") ||
          !target["arguments"].is_string()) {
        continue;
      }
      absl::StatusOr<ordered_json> parsed =
          ParseJson(target["arguments"].get_ref<const std::string&>());
      if (parsed.ok() && parsed->is_object()) {
        target["arguments"] = *std::move(parsed);
        has_changed = true;
      }
    }
  }
  return has_changed;
}

RenderedPrompt ToPrompt(const TracedText& text) {
  RenderedPrompt prompt;
  prompt.text = std::string(text.bytes());
  for (const TracedText::Run& run : text.Runs()) {
    prompt.segments.push_back({run.begin, run.end, run.origin == Origin::kTrusted});
  }
  return prompt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Create(
    absl::string_view template_text, const jinja::RuntimeLimits& limits) {
  ASSIGN_OR_RETURN(std::unique_ptr<const jinja::SyntaxTree> tree,
                   jinja::ParseTemplate(FromAbseil(template_text)));
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(tree), limits));
}

absl::StatusOr<RenderedPrompt> ChatTemplate::Render(const ChatInput& input) const {
  if (input.continue_final_message && input.add_generation_prompt) {
    return absl::InvalidArgumentError(
        "continue_final_message and add_generation_prompt exclude each other: set only one");
  }
  if (input.tool_arguments == ToolArguments::kAsGiven) {
    return RenderOnce(input, input.messages);
  }
  ordered_json messages = input.messages;
  const bool has_parsed = ParseToolArguments(messages);
  absl::StatusOr<RenderedPrompt> prompt = RenderOnce(input, messages);
  if (prompt.ok() || !has_parsed || RefusalMessage(prompt.status()).has_value()) {
    return prompt;
  }
  absl::StatusOr<RenderedPrompt> with_strings = RenderOnce(input, input.messages);
  return with_strings.ok() ? with_strings : prompt;
}

absl::StatusOr<RenderedPrompt> ChatTemplate::RenderOnce(const ChatInput& input,
                                                        const ordered_json& messages) const {
  Runtime runtime(limits_, input.now);
  Interpreter interpreter(*tree_, runtime);
  if (!input.continue_final_message) {
    RETURN_IF_ERROR(SetVariables(input, messages, runtime, interpreter));
    ASSIGN_OR_RETURN(const TracedText text, interpreter.Run());
    return ToPrompt(text);
  }
  ordered_json marked = messages;
  ASSIGN_OR_RETURN(const std::string final_message, MarkFinalMessage(marked));
  RETURN_IF_ERROR(SetVariables(input, marked, runtime, interpreter));
  ASSIGN_OR_RETURN(const TracedText text, interpreter.Run());
  ASSIGN_OR_RETURN(const TracedText cut, CutAtMarker(text, final_message));
  return ToPrompt(cut);
}

bool ChatTemplate::UsesVariable(absl::string_view name) const {
  return tree_->symbol_numbers.contains(name);
}

std::optional<std::string> RefusalMessage(const absl::Status& status) {
  return jinja::RaisedMessage(status);
}

}  // namespace trireme::text
