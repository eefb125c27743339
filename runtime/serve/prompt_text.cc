#include "runtime/serve/prompt_text.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "inference.pb.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/status_macros.h"

namespace trireme::serve {
namespace {

using Json = nlohmann::ordered_json;

absl::Status BadTemplateInput(absl::string_view field, absl::string_view description) {
  const absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, ": ", description));
  return WithField(WithReason(status, kReasonBadTemplateInput), field, description);
}

absl::StatusOr<const text::Tokenizer*> TokenizerOf(const ReplicaFacade& replica,
                                                   absl::string_view field) {
  if (replica.tokenizer != nullptr) {
    return replica.tokenizer;
  }
  const absl::string_view description = "needs a tokenizer, which this model lacks; send token ids";
  return WithField(WithReason(absl::UnimplementedError(absl::StrCat(field, " ", description)),
                              kReasonFieldNotSupported),
                   field, description);
}

// Walked recursively later, so the depth is bounded here.
absl::StatusOr<Json> ParseJsonObject(absl::string_view text, int64_t depth_max,
                                     absl::string_view field) {
  bool too_deep = false;
  const auto check_depth = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > depth_max;
    return !too_deep;
  };
  Json value = Json::parse(text.begin(), text.end(), check_depth, /*allow_exceptions=*/false);
  if (too_deep) {
    return BadTemplateInput(field, absl::StrCat("is nested deeper than ", depth_max));
  }
  if (!value.is_object()) {
    return BadTemplateInput(field, "is not a JSON object");
  }
  return value;
}

absl::StatusOr<Json> MessageJson(const v1::ChatMessage& message, int64_t depth_max,
                                 absl::string_view field) {
  Json json = {{"role", message.role()}, {"content", message.content()}};
  if (message.has_name()) json["name"] = message.name();
  if (message.has_tool_call_id()) json["tool_call_id"] = message.tool_call_id();
  if (message.has_reasoning_content()) json["reasoning_content"] = message.reasoning_content();
  for (int index = 0; index < message.tool_calls_size(); ++index) {
    const v1::ToolCall& call = message.tool_calls(index);
    ASSIGN_OR_RETURN(
        Json arguments,
        ParseJsonObject(call.arguments_json().empty() ? "{}" : call.arguments_json(), depth_max,
                        absl::StrCat(field, ".tool_calls[", index, "].arguments_json")));
    json["tool_calls"].push_back(
        {{"id", call.id()},
         {"type", "function"},
         {"function", {{"name", call.name()}, {"arguments", std::move(arguments)}}}});
  }
  return json;
}

Json VariableJson(const v1::TemplateVariable& variable) {
  switch (variable.value_case()) {
    case v1::TemplateVariable::kFlag:
      return variable.flag();
    case v1::TemplateVariable::kNumber:
      return variable.number();
    case v1::TemplateVariable::kText:
      return variable.text();
    case v1::TemplateVariable::VALUE_NOT_SET:
      break;
  }
  return nullptr;
}

absl::StatusOr<text::ChatInput> TemplateInput(const ReplicaFacade& replica,
                                              const v1::ChatInput& chat) {
  const int64_t depth_max = replica.model.limits.json_depth_max;
  text::ChatInput input;
  input.messages = Json::array();
  for (int index = 0; index < chat.messages_size(); ++index) {
    ASSIGN_OR_RETURN(Json message, MessageJson(chat.messages(index), depth_max,
                                               absl::StrCat("chat.messages[", index, "]")));
    input.messages.push_back(std::move(message));
  }
  if (chat.tools_json_size() > 0) {
    input.tools = Json::array();
  }
  for (int index = 0; index < chat.tools_json_size(); ++index) {
    ASSIGN_OR_RETURN(Json tool, ParseJsonObject(chat.tools_json(index), depth_max,
                                                absl::StrCat("chat.tools_json[", index, "]")));
    input.tools.push_back(std::move(tool));
  }
  for (const auto& [name, variable] : chat.template_variables()) {
    input.variables[name] = VariableJson(variable);
  }
  input.add_generation_prompt = !chat.has_add_generation_prompt() || chat.add_generation_prompt();
  if (!replica.model.bos_token.empty()) input.bos_token = replica.model.bos_token;
  if (!replica.model.eos_token.empty()) input.eos_token = replica.model.eos_token;
  input.now = absl::ToCivilSecond(absl::Now(), absl::LocalTimeZone());
  return input;
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> EncodeText(const ReplicaFacade& replica,
                                                absl::string_view text,
                                                const v1::TextOptions& options) {
  ASSIGN_OR_RETURN(const text::Tokenizer* tokenizer, TokenizerOf(replica, "text"));
  const bool parse = !options.has_parse_special_tokens() || options.parse_special_tokens();
  const bool add_bos = !options.has_add_bos() || options.add_bos();
  return tokenizer->Encode(text, parse ? text::SpecialTokens::kParse : text::SpecialTokens::kAsText,
                           add_bos);
}

absl::StatusOr<RenderedChat> EncodeChat(const ReplicaFacade& replica, const v1::ChatInput& chat) {
  ASSIGN_OR_RETURN(const text::Tokenizer* tokenizer, TokenizerOf(replica, "chat"));
  if (replica.chat_template == nullptr) {
    const absl::string_view description =
        "needs a chat template, which this model lacks; send text or token ids";
    return WithField(WithReason(absl::UnimplementedError(absl::StrCat("chat ", description)),
                                kReasonFieldNotSupported),
                     "chat", description);
  }
  ASSIGN_OR_RETURN(const text::ChatInput input, TemplateInput(replica, chat));
  absl::StatusOr<text::RenderedPrompt> prompt = replica.chat_template->Render(input);
  if (!prompt.ok()) {
    return BadTemplateInput("chat", std::string(prompt.status().message()));
  }
  std::vector<text::TextSegment> segments;
  for (const text::PromptSegment& segment : prompt->segments) {
    segments.push_back(
        {absl::string_view(prompt->text).substr(segment.begin, segment.end - segment.begin),
         segment.is_trusted});
  }
  RenderedChat rendered;
  ASSIGN_OR_RETURN(rendered.token_ids, tokenizer->EncodeSegments(segments, /*add_bos=*/true));
  rendered.text = std::move(prompt->text);
  return rendered;
}

}  // namespace trireme::serve
