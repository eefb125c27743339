// The lexer of chat templates: text and tags, with Jinja's white space control, trim_blocks and
// lstrip_blocks on.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_LEXER_H_
#define TRIREME_RUNTIME_TEXT_JINJA_LEXER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trireme::text::jinja {

// Of a template; published ones have up to 5000. They take 4 MiB.
inline constexpr size_t kTokensMax = 100'000;

enum class TokenKind : uint8_t {
  kText,           // template text between tags; value
  kBlockBegin,     // {%
  kBlockEnd,       // %}
  kVariableBegin,  // {{
  kVariableEnd,    // }}
  kName,           // value
  kString,         // value, escapes resolved
  kInteger,        // value: digits, with 0x, 0o or 0b in front, without underscores
  kFloat,          // value, without underscores
  kOperator,       // value
  kEnd,            // of the template
};

struct Token {
  TokenKind kind;
  uint32_t offset;  // byte in the template
  std::string value;
};

// The template with line ends as "\n" and one final line end dropped.
std::string NormalizeSource(std::string_view template_text);

// The tokens of a normalized template, kEnd last. Comments are dropped. INVALID_ARGUMENT with line
// and column otherwise, RESOURCE_EXHAUSTED beyond kTokensMax.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source);

// "line 3, column 14": both from 1, the column in characters.
std::string PlaceOf(std::string_view source, uint32_t offset);
// INVALID_ARGUMENT "chat template, line 3, column 14: message".
absl::Status SyntaxError(std::string_view source, uint32_t offset, std::string_view message);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_LEXER_H_
