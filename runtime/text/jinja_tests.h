// The tests of templates: what may stand after `is`.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_TESTS_H_
#define TRIREME_RUNTIME_TEXT_JINJA_TESTS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

using TestFunction = absl::StatusOr<bool> (*)(Runtime& runtime, const Value& value,
                                              const Arguments& arguments);

// Null when there is no test of that name.
TestFunction FindTest(std::string_view name);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_TESTS_H_
