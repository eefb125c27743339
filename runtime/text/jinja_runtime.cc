#include "runtime/text/jinja_runtime.h"

#include <algorithm>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_strings.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

// The bookkeeping of a counted string besides its bytes.
constexpr size_t kStringOverheadBytes = 96;

absl::StatusOr<std::vector<Value>> Characters(Runtime& runtime, const TracedText& text) {
  const std::string_view bytes = text.bytes();
  RETURN_IF_ERROR(runtime.SpendProduct(static_cast<Integer>(bytes.size()), sizeof(Value)));
  std::vector<Value> items;
  items.reserve(bytes.size());
  for (size_t offset = 0; offset < bytes.size();) {
    const size_t length = DecodeAt(bytes, offset).bytes;
    ASSIGN_OR_RETURN(Value character, runtime.String(text.Slice(offset, offset + length)));
    items.push_back(std::move(character));
    offset += length;
  }
  return items;
}

}  // namespace

absl::Status Runtime::StepsExhausted() const {
  return absl::ResourceExhaustedError(
      Joined("the template used more than its limit of ", limits_.steps_max,
             " steps (work and memory); it loops, or builds something huge"));
}

absl::Status Runtime::SpendProduct(Integer count, size_t bytes_each) {
  if (count <= 0 || bytes_each == 0) {
    return absl::OkStatus();
  }
  const Integer most = static_cast<Integer>(limits_.steps_max) * 32;
  if (count > most || static_cast<Integer>(bytes_each) > most / count) {
    steps_ = limits_.steps_max + 1;
    return StepsExhausted();
  }
  return SpendBytes(static_cast<size_t>(count) * bytes_each);
}

absl::Status Runtime::SpendInput(size_t bytes) {
  if (bytes > limits_.input_bytes_max - input_bytes_) {
    return absl::ResourceExhaustedError(Joined("the conversation has more text than the limit of ",
                                               limits_.input_bytes_max, " bytes"));
  }
  input_bytes_ += bytes;
  return absl::OkStatus();
}

absl::StatusOr<Value> Runtime::String(TracedText text, StringFlavor flavor) {
  RETURN_IF_ERROR(SpendBytes(text.footprint() + kStringOverheadBytes));
  return Value::Of(std::make_shared<const StringData>(StringData{std::move(text), flavor}));
}

absl::StatusOr<Value> Runtime::String(std::string bytes, Origin origin) {
  return String(TracedText(std::move(bytes), origin));
}

absl::StatusOr<Value> Runtime::List(std::vector<Value> items, SequenceFlavor flavor) {
  RETURN_IF_ERROR(SpendBytes((items.size() + 2) * sizeof(Value)));
  return Value::Of(New<Sequence>(std::move(items), flavor));
}

absl::StatusOr<Map*> Runtime::NewMap() {
  RETURN_IF_ERROR(SpendBytes(sizeof(Map)));
  return New<Map>();
}

absl::StatusOr<std::vector<Value>> Runtime::Iterate(const Value& value) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Kind::kUndefined: {
      const UndefinedData* reason = value.undefined_reason();
      if (reason != nullptr && reason->reason == UndefinedData::Reason::kUnsafe) {
        return TemplateError(UndefinedMessage(value));
      }
      return items;
    }
    case Kind::kString:
      return Characters(*this, value.text());
    case Kind::kSequence: {
      Sequence* sequence = value.AsSequence();
      RETURN_IF_ERROR(SpendBytes(sequence->items.size() * sizeof(Value)));
      if (sequence->flavor == SequenceFlavor::kGenerator) {
        items.swap(sequence->items);
        return items;
      }
      return sequence->items;
    }
    case Kind::kMap: {
      const auto& entries = value.AsMap()->entries;
      RETURN_IF_ERROR(SpendBytes(entries.size() * sizeof(Value)));
      items.reserve(entries.size());
      for (const auto& [key, element] : entries) {
        items.push_back(key);
      }
      return items;
    }
    case Kind::kRange: {
      const Range* range = static_cast<const Range*>(value.object());
      RETURN_IF_ERROR(SpendProduct(range->size(), sizeof(Value)));
      items.reserve(static_cast<size_t>(range->size()));
      for (int64_t i = 0; i < range->size(); ++i) {
        items.push_back(range->At(i));
      }
      return items;
    }
    default:
      return TemplateError("'", TypeName(value), "' object is not iterable");
  }
}

absl::Status RequireDefined(const Value& value) {
  return value.IsUndefined() ? TemplateError(UndefinedMessage(value)) : absl::OkStatus();
}

absl::StatusOr<std::vector<const Value*>> BindArguments(
    std::string_view callee, const Arguments& arguments,
    const std::vector<std::string_view>& names) {
  std::vector<const Value*> bound(names.size(), nullptr);
  if (arguments.positional.size() > names.size()) {
    return TemplateError(callee, "() takes at most ", names.size(), " arguments, got ",
                         arguments.positional.size());
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    bound[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.keywords) {
    const auto found = std::find(names.begin(), names.end(), name.bytes());
    if (found == names.end()) {
      return TemplateError(callee, "() has no argument named '", name.bytes(), "'");
    }
    const Value*& place = bound[static_cast<size_t>(found - names.begin())];
    if (place != nullptr) {
      return TemplateError(callee, "() got two values for argument '", name.bytes(), "'");
    }
    place = &value;
  }
  return bound;
}

absl::StatusOr<std::string_view> RequireString(std::string_view callee, const Value* argument) {
  if (argument == nullptr || !argument->IsString()) {
    return TemplateError(callee, " needs a string, not ",
                         argument == nullptr ? "nothing" : TypeName(*argument));
  }
  return argument->bytes();
}

absl::StatusOr<Integer> IntegerOr(std::string_view callee, const Value* argument,
                                  Integer otherwise) {
  if (argument == nullptr || argument->Is(Kind::kNone)) {
    return otherwise;
  }
  if (!argument->IsNumber() || argument->Is(Kind::kFloat)) {
    return TemplateError(callee, " needs an integer, not ", TypeName(*argument));
  }
  return argument->AsInteger();
}

bool IsTrueArgument(const Value* argument) { return argument != nullptr && IsTrue(*argument); }

}  // namespace trireme::text::jinja
