// Reads what stands for one character in a regular expression: classes in brackets, and escapes
// such as \s and \p{L}.
#ifndef TRIREME_RUNTIME_TEXT_PATTERN_CLASS_H_
#define TRIREME_RUNTIME_TEXT_PATTERN_CLASS_H_

#include "absl/status/statusor.h"
#include "runtime/text/character_set.h"
#include "runtime/text/pattern_cursor.h"

namespace trireme::text {

// From "[" to its "]". Errors (InvalidArgument): a class that is malformed or not known.
absl::StatusOr<CharacterSet> ReadPatternClass(PatternCursor* cursor);

// From a backslash on. Errors (InvalidArgument): an escape or a property that is not known.
absl::StatusOr<CharacterSet> ReadPatternEscape(PatternCursor* cursor);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_PATTERN_CLASS_H_
