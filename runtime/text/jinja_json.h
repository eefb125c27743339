// JSON at the borders of a template: text and documents into template values, and the `tojson`
// filter's way out.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_JSON_H_
#define TRIREME_RUNTIME_TEXT_JINJA_JSON_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

// Reads JSON text, keeping the order of keys; the last of equal keys wins. Integers that do not fit
// in 64 bits are kept exactly (as binary values of subtype kBigIntegerSubtype that hold the
// digits), which FromJson understands. Errors: INVALID_ARGUMENT with the position;
// RESOURCE_EXHAUSTED for nesting beyond kDataDepthMax.
absl::StatusOr<nlohmann::ordered_json> ParseJson(std::string_view text);

inline constexpr unsigned kBigIntegerSubtype = 1;

// A document as a template value; every string in it gets `origin`.
// Errors: strings that are not UTF-8, nesting beyond kDataDepthMax, steps used up.
absl::StatusOr<Value> FromJson(Runtime& runtime, const nlohmann::ordered_json& document,
                               Origin origin);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // of one level
  std::optional<std::string> item_separator;
  std::optional<std::string> key_separator;
};

// Python's json.dumps. Errors: values that JSON has no word for, nesting beyond kDataDepthMax,
// steps used up.
absl::StatusOr<std::string> ToJson(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_JSON_H_
