#include "runtime/text/jinja_path.h"

#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_methods.h"
#include "runtime/text/jinja_strings.h"

namespace trireme::text::jinja {

// "a.b.0": elements or attributes, one after the other.
absl::StatusOr<Value> FollowPath(Runtime& runtime, const Value& value, const Value& path) {
  if (!path.IsString()) {
    return ElementOrAttribute(runtime, value, path);
  }
  Value current = value;
  for (const std::string_view part : SplitAt(path.bytes(), '.')) {
    int64_t index = 0;
    const bool is_index = !part.empty() && part[0] >= '0' && part[0] <= '9' &&
                          absl::SimpleAtoi(ToAbseil(part), &index);
    ASSIGN_OR_RETURN(Value key, runtime.String(std::string(part), Origin::kTrusted));
    if (is_index) {
      key = Value::Of(Integer{index});
    }
    ASSIGN_OR_RETURN(current, ElementOrAttribute(runtime, current, key));
  }
  return current;
}

std::vector<std::string_view> SplitAt(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (size_t at = text.find(separator); at != std::string_view::npos;
       at = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

Value EmptyUndefined(std::string reason) {
  Value text = Value::Of(std::make_shared<const StringData>(
      StringData{TracedText(std::move(reason), Origin::kTrusted), StringFlavor::kPlain}));
  return Value::Undefined(std::make_shared<const UndefinedData>(
      UndefinedData{UndefinedData::Reason::kText, "", std::move(text)}));
}

}  // namespace trireme::text::jinja
