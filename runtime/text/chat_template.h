// A model's chat template: turns a conversation into the prompt text the model was trained on. The
// template comes with the model file and is a program of its own, so it is parsed at load time and
// run under limits (jinja_runtime.h); it cannot reach files, the network or anything but its input.
// Not for: choosing a template, or tokenizing its result.
//
// Terms: a *segment* is a stretch of the prompt that either the template wrote itself (trusted: its
// special tokens count as such) or that came from messages, tools or other variables (untrusted: it
// must never be read as special tokens, or a user could forge turns). Tokenize the prompt as one
// text, but match special tokens only where they lie wholly in trusted segments.
#ifndef TRIREME_RUNTIME_TEXT_CHAT_TEMPLATE_H_
#define TRIREME_RUNTIME_TEXT_CHAT_TEMPLATE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "nlohmann/json.hpp"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_syntax.h"

namespace trireme::text {

// What the arguments of a tool call are when they arrive as a JSON string.
enum class ToolArguments : uint8_t {
  kAsGiven,
  // Read as JSON first, since most templates expect a mapping; as the string if the template fails
  // on that. For the wire.
  kParsedIfPossible,
};

struct ChatInput {
  // A list of objects with "role", "content" and what else the template knows ("tool_calls",
  // "reasoning_content"). Members that are null count as absent.
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  nlohmann::ordered_json tools;      // a list, or null for none
  nlohmann::ordered_json documents;  // a list, or null for none
  // Ends the prompt with the opening of an assistant's turn.
  bool add_generation_prompt = false;
  // Leaves the last message open, so that the model continues it. Excludes add_generation_prompt.
  bool continue_final_message = false;
  // The texts of these tokens; unset ones are undefined in the template.
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  // An object with further variables, such as "enable_thinking". They override the ones above.
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
  // The local time that strftime_now() tells.
  absl::CivilSecond now;
  ToolArguments tool_arguments = ToolArguments::kAsGiven;
};

struct PromptSegment {
  size_t begin;  // bytes of the text
  size_t end;
  bool is_trusted;
};

struct RenderedPrompt {
  std::string text;
  // In order, covering the text without gaps; neighbours differ in is_trusted.
  std::vector<PromptSegment> segments;
};

// Immutable; Render may be called from several threads at once.
class ChatTemplate {
 public:
  // Parses. Errors: INVALID_ARGUMENT with line and column for a text that is no template,
  // RESOURCE_EXHAUSTED for one beyond a limit.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Create(
      absl::string_view template_text, const jinja::RuntimeLimits& limits = {});

  // Errors: INVALID_ARGUMENT with line and column when the template refuses the conversation
  // (RefusalMessage) or fails on it, and for input of the wrong shape; RESOURCE_EXHAUSTED with the
  // limit's name.
  absl::StatusOr<RenderedPrompt> Render(const ChatInput& input) const;

  // Whether the template names the variable at all, as "tools" or "enable_thinking".
  bool UsesVariable(absl::string_view name) const;

 private:
  ChatTemplate(std::unique_ptr<const jinja::SyntaxTree> tree, const jinja::RuntimeLimits& limits)
      : tree_(std::move(tree)), limits_(limits) {}
  absl::StatusOr<RenderedPrompt> RenderOnce(const ChatInput& input,
                                            const nlohmann::ordered_json& messages) const;

  const std::unique_ptr<const jinja::SyntaxTree> tree_;
  const jinja::RuntimeLimits limits_;
};

// The message with which the template refused the conversation (raise_exception), when that is what
// `status` is.
std::optional<std::string> RefusalMessage(const absl::Status& status);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_CHAT_TEMPLATE_H_
