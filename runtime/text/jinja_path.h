// Paths into data, as filters take them: "role", "function.name", "items.0".
#ifndef TRIREME_RUNTIME_TEXT_JINJA_PATH_H_
#define TRIREME_RUNTIME_TEXT_JINJA_PATH_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

// Elements or attributes, one after the other; numbers are positions. A `path` that is no string is
// one element. Undefined when the last is missing. Errors: one before the last is missing.
absl::StatusOr<Value> FollowPath(Runtime& runtime, const Value& value, const Value& path);

// The parts between separators; one, perhaps empty, when there is no separator.
std::vector<std::string_view> SplitAt(std::string_view text, char separator);

// The value of what an empty sequence lacks, with the reason.
Value EmptyUndefined(std::string reason);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_PATH_H_
