// String methods and helpers that look for a text within a text: find, replace, split, join. They
// keep origins.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_STRING_SEARCH_H_
#define TRIREME_RUNTIME_TEXT_JINJA_STRING_SEARCH_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/text/jinja_methods.h"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

absl::Span<const MethodEntry> StringSearchMethods();

// `count` below 0 replaces all. An empty `old_text` matches between characters.
absl::StatusOr<TracedText> Replace(Runtime& runtime, const TracedText& text,
                                   std::string_view old_text, const TracedText& new_text,
                                   Integer count);
// The lines, with or without their ends.
absl::StatusOr<std::vector<TracedText>> SplitLines(Runtime& runtime, const TracedText& text,
                                                   bool keep_ends);
// Words between white space.
absl::StatusOr<std::vector<TracedText>> SplitWords(Runtime& runtime, const TracedText& text);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_STRING_SEARCH_H_
