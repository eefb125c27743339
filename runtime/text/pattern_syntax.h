// Reads the regular expressions that tokenizer files carry (Oniguruma's syntax, as Ruby has it)
// into a form without characters: operators as text, and sets of characters as numbers. What is not
// understood is refused: an expression that is read wrongly would give wrong tokens.
#ifndef TRIREME_RUNTIME_TEXT_PATTERN_SYNTAX_H_
#define TRIREME_RUNTIME_TEXT_PATTERN_SYNTAX_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/text/character_set.h"

namespace trireme::text {

// A longer expression is refused. Published ones have up to 2 KiB.
inline constexpr size_t kPatternBytesMax = size_t{1} << 14;

// One part of an expression: an operator that PCRE2 understands as it stands, or, when `set` is not
// negative, one character of sets[set].
struct PatternItem {
  std::string operators;
  int set = -1;
};

struct PatternSyntax {
  std::vector<PatternItem> items;
  std::vector<CharacterSet> sets;
};

// Understood: literals, ".", classes with ranges, negation, nesting and "&&", \p{..} and \P{..},
// \s \d \w \h and their negations, the usual escapes, \x{..} and \u....; groups, (?i:..) and (?i),
// look-ahead and look-behind, atomic groups, alternation, all quantifiers, ^ $ \A \z \Z \b \B.
// Errors: InvalidArgument with the byte where it went wrong, for what is malformed and for what is
// not understood, such as references to groups.
absl::StatusOr<PatternSyntax> ParsePattern(absl::string_view pattern);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_PATTERN_SYNTAX_H_
