#include "tests/runtime/text/jinja_test_support.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/jinja_json.h"

namespace trireme::text::jinja {
namespace {

absl::StatusOr<RenderedPrompt> Render(const std::string& template_text,
                                      const std::string& variables) {
  absl::StatusOr<std::unique_ptr<ChatTemplate>> chat_template = ChatTemplate::Create(template_text);
  if (!chat_template.ok()) {
    return chat_template.status();
  }
  absl::StatusOr<nlohmann::ordered_json> parsed = ParseJson(variables);
  if (!parsed.ok()) {
    return parsed.status();
  }
  ChatInput input;
  input.variables = *std::move(parsed);
  input.now = FixtureTime();
  return (*chat_template)->Render(input);
}

std::string ErrorText(const absl::Status& status) {
  return "ERROR: " + std::string(status.message());
}

}  // namespace

std::string Rendered(const std::string& template_text, const std::string& variables) {
  const absl::StatusOr<RenderedPrompt> prompt = Render(template_text, variables);
  return prompt.ok() ? prompt->text : ErrorText(prompt.status());
}

std::string RenderedWithOrigins(const std::string& template_text, const std::string& variables) {
  const absl::StatusOr<RenderedPrompt> prompt = Render(template_text, variables);
  if (!prompt.ok()) {
    return ErrorText(prompt.status());
  }
  std::string shown;
  for (const PromptSegment& segment : prompt->segments) {
    const std::string piece = prompt->text.substr(segment.begin, segment.end - segment.begin);
    shown += segment.is_trusted ? piece : "<<" + piece + ">>";
  }
  return shown;
}

}  // namespace trireme::text::jinja
