// How template values look as text: Python's str() and repr().
// A string keeps its origins; what repr() builds out of strings counts as untrusted, numbers and
// names as trusted.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_PRINT_H_
#define TRIREME_RUNTIME_TEXT_JINJA_PRINT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

std::string IntegerText(Integer value);
// The shortest digits that read back as the same double, in Python's layout: "1.0", "1e+16", "inf".
std::string FloatText(double value);
// A string literal as Python writes it, quotes included.
std::string QuotedText(std::string_view text);

// str(value). Errors: containers deeper than kDataDepthMax, steps used up, use of an unsafe
// attribute.
absl::StatusOr<TracedText> ToText(Runtime& runtime, const Value& value);
// The same as a value; a string is returned as it is.
absl::StatusOr<Value> ToString(Runtime& runtime, const Value& value);
// Appends repr(value).
absl::Status AppendRepr(Runtime& runtime, const Value& value, int depth, std::string& out);

// Replaces & < > " ' for HTML. Keeps origins.
absl::StatusOr<TracedText> EscapeHtml(Runtime& runtime, const TracedText& text);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_PRINT_H_
