// Comparison of template values, by Python's rules. Errors are INVALID_ARGUMENT (types without an
// order) or RESOURCE_EXHAUSTED (steps, nesting beyond kDataDepthMax).
#ifndef TRIREME_RUNTIME_TEXT_JINJA_COMPARISON_H_
#define TRIREME_RUNTIME_TEXT_JINJA_COMPARISON_H_

#include "absl/status/statusor.h"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_syntax.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

// One of the comparisons, kEqual to kNotIn.
absl::StatusOr<bool> Compare(Runtime& runtime, Operator operation, const Value& a, const Value& b);
absl::StatusOr<bool> Equals(Runtime& runtime, const Value& a, const Value& b);
// Negative, zero or positive.
absl::StatusOr<int> Order(Runtime& runtime, const Value& a, const Value& b);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_COMPARISON_H_
