// Python's string methods for template values. Those that cut, strip or replace keep the origins of
// the text.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_STRING_METHODS_H_
#define TRIREME_RUNTIME_TEXT_JINJA_STRING_METHODS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/text/jinja_methods.h"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_unicode.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

// Null when strings have no such method.
const MethodEntry* FindStringMethod(std::string_view name);

// What several filters share with methods.
TracedText ChangeCase(const TracedText& text, LetterCase letter_case);
// First character in upper case, the rest in lower.
TracedText Capitalize(const TracedText& text);
absl::StatusOr<TracedText> Center(Runtime& runtime, const TracedText& text, Integer width);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_STRING_METHODS_H_
