// The functions every template can call: range, namespace, dict, cycler, joiner, raise_exception,
// strftime_now.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_FUNCTIONS_H_
#define TRIREME_RUNTIME_TEXT_JINJA_FUNCTIONS_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/civil_time.h"
#include "absl/types/span.h"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

using GlobalFunction = absl::StatusOr<Value> (*)(Runtime& runtime, const Arguments& arguments);

struct FunctionEntry {
  std::string_view name;
  GlobalFunction function;
};

struct Function : Object {
  explicit Function(const FunctionEntry& function_entry)
      : Object(Kind::kFunction), entry(function_entry) {}
  const FunctionEntry& entry;
};

absl::Span<const FunctionEntry> GlobalFunctions();

// The message that the template gave to raise_exception, when that is what `status` is; it survives
// the place being added.
std::optional<std::string> RaisedMessage(const absl::Status& status);

// strftime of the C locale. `format` may name any conversion of Python's; an unknown one stays as
// it is.
std::string FormatTime(std::string_view format, absl::CivilSecond time);

// Names with an underscore in front are Python's own and cannot be stored on a namespace.
absl::Status CheckNamespaceName(std::string_view name);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_FUNCTIONS_H_
