// Arithmetic of template expressions on values, by Python's rules. Errors are INVALID_ARGUMENT
// (types, division by zero, integers beyond 128 bits) or RESOURCE_EXHAUSTED (steps).
#ifndef TRIREME_RUNTIME_TEXT_JINJA_ARITHMETIC_H_
#define TRIREME_RUNTIME_TEXT_JINJA_ARITHMETIC_H_

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_syntax.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

// One of the arithmetic operators, kAdd to kPower. Adds and repeats strings and lists too; `%`
// formats a string.
absl::StatusOr<Value> Arithmetic(Runtime& runtime, Operator operation, const Value& a,
                                 const Value& b);
absl::StatusOr<Value> Negate(const Value& value);
// The `~` operator: a plain string of all parts.
absl::StatusOr<Value> Concatenate(Runtime& runtime, const std::vector<Value>& parts);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_ARITHMETIC_H_
