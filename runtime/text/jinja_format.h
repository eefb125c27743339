// Python's two ways to put values into a text: "%s and %d" % values, and "{} and
// {name}".format(values).
#ifndef TRIREME_RUNTIME_TEXT_JINJA_FORMAT_H_
#define TRIREME_RUNTIME_TEXT_JINJA_FORMAT_H_

#include "absl/status/statusor.h"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

// `values`: a tuple with one value a conversion, a mapping for "%(name)s", or the only value.
// Errors: too few or too many values, a value of the wrong type, an unknown conversion, widths
// beyond the step limit.
absl::StatusOr<Value> FormatPercent(Runtime& runtime, const Value& format, const Value& values);

// Fields "{}", "{0}", "{name}", each with ".attribute", "[key]", "!r" or "!s" and a format
// specification. Errors as above.
absl::StatusOr<Value> FormatBraces(Runtime& runtime, const Value& format,
                                   const Arguments& arguments);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_FORMAT_H_
