// Entry point for fuzzers over chat templates: parses one, and renders a conversation with it under
// limits that a fuzzer can wait for.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "runtime/base/check.h"
#include "runtime/text/chat_template.h"

namespace {

using nlohmann::ordered_json;
using trireme::text::ChatInput;

ChatInput MakeInput() {
  ChatInput input;
  input.messages = ordered_json::parse(
      R"([{"role": "system", "content": "S"}, {"role": "user", "content": "a <b> 'c' \u00e9"},
          {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f",
             "arguments": {"x": [1, 2.5, null, true]}}}]},
          {"role": "tool", "content": "7"}])");
  input.tools = ordered_json::parse(
      R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object",
          "properties": {"x": {"type": ["array", "null"]}}}}}])");
  input.add_generation_prompt = true;
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  input.variables = ordered_json::parse(R"({"n": 3, "text": "line 1\nline 2", "list": [3, 1, 2]})");
  input.now = absl::CivilSecond(2025, 1, 31, 12, 34, 56);
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ChatInput* const input = new ChatInput(MakeInput());
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto chat_template =
      trireme::text::ChatTemplate::Create(text, {.steps_max = 30'000, .output_bytes_max = 1 << 18});
  if (!chat_template.ok()) {
    CHECK(!chat_template.status().message().empty());
    return 0;
  }
  const auto prompt = (*chat_template)->Render(*input);
  if (!prompt.ok()) {
    CHECK(!prompt.status().message().empty());
    return 0;
  }
  size_t end = 0;
  for (const trireme::text::PromptSegment& segment : prompt->segments) {
    CHECK_EQ(segment.begin, end);
    end = segment.end;
  }
  CHECK_EQ(end, prompt->text.size());
  return 0;
}
