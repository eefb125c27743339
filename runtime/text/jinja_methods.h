// Methods and attributes of template values: "text".strip(), mapping.items(), loop.index,
// namespace.name. Methods that would change their object do not exist; naming one gives an
// undefined value that says so when used.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_METHODS_H_
#define TRIREME_RUNTIME_TEXT_JINJA_METHODS_H_

#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

using MethodFunction = absl::StatusOr<Value> (*)(Runtime& runtime, const Value& self,
                                                 const Arguments& arguments);

struct MethodEntry {
  std::string_view name;
  MethodFunction function;
};

// A method together with the value it belongs to.
struct Method : Object {
  Method(Value method_self, const MethodEntry& method_entry)
      : Object(Kind::kMethod), self(std::move(method_self)), entry(method_entry) {}
  const Value self;
  const MethodEntry& entry;
};

// owner.name, where `name` is a string: a method or field first, then the element of that name.
// Undefined when there is neither. Errors: the owner is undefined.
absl::StatusOr<Value> Attribute(Runtime& runtime, const Value& owner, const Value& name);
// owner[key]: the element first, then the method or field. Undefined when there is neither.
absl::StatusOr<Value> ElementOrAttribute(Runtime& runtime, const Value& owner, const Value& key);

// The method or field only, never an element.
absl::StatusOr<Value> Member(Runtime& runtime, const Value& owner, const Value& name);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_METHODS_H_
