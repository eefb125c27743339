// Elements, slices and length of template values, by Python's rules; strings count in characters.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_ELEMENTS_H_
#define TRIREME_RUNTIME_TEXT_JINJA_ELEMENTS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

// owner[key]; undefined when there is no such element. Errors: the owner is undefined.
absl::StatusOr<Value> Element(Runtime& runtime, const Value& owner, const Value& key);
// owner[start:stop:step]; each of the three may be none. Errors: not a string, list or range; a
// step of zero.
absl::StatusOr<Value> Slice(Runtime& runtime, const Value& owner, const Value& start,
                            const Value& stop, const Value& step);
// len(value). Errors: values without a length.
absl::StatusOr<int64_t> Length(Runtime& runtime, const Value& value);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_ELEMENTS_H_
