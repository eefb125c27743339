// Entry point for fuzzers over tokenizer.json.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "tests/fuzz/text_use.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view file(reinterpret_cast<const char*>(data), size);
  trireme::text::UseTokenizer(
      trireme::text::Tokenizer::CreateFromJson(file, {.chat_template = "<s>{{ x }}"}));
  return 0;
}
