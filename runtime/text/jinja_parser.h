// Parser of chat templates: text to syntax tree, by Jinja's grammar with loop controls and the
// `generation` tag. Nesting and size are limited, so that neither parsing, nor destroying, nor
// rendering a tree can exhaust the stack.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_PARSER_H_
#define TRIREME_RUNTIME_TEXT_JINJA_PARSER_H_

#include <cstddef>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/text/jinja_syntax.h"

namespace trireme::text::jinja {

// Published templates have up to 20 KiB.
inline constexpr size_t kTemplateBytesMax = size_t{1} << 20;
// Brackets and blocks within each other. Published templates nest 12 deep.
inline constexpr int kNestingMax = 64;
// Height of an expression's tree: the longest published chain of `+` has about 30 links.
inline constexpr int kExpressionHeightMax = 160;
// Nodes of a whole tree, about 10 MiB of them. Published templates have up to 3000.
inline constexpr int kTreeNodesMax = 30'000;

// Errors: INVALID_ARGUMENT with line and column for what is not a template, RESOURCE_EXHAUSTED for
// one beyond a limit, by name.
absl::StatusOr<std::unique_ptr<const SyntaxTree>> ParseTemplate(std::string_view template_text);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_PARSER_H_
