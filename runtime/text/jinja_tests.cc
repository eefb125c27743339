#include "runtime/text/jinja_tests.h"

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_arithmetic.h"
#include "runtime/text/jinja_comparison.h"
#include "runtime/text/jinja_filters.h"
#include "runtime/text/jinja_string_methods.h"

namespace trireme::text::jinja {
namespace {

using Result = absl::StatusOr<bool>;

// The one argument that the test needs.
absl::StatusOr<Value> OnlyArgument(const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("a test", arguments, {"other"}));
  if (bound[0] == nullptr) {
    return TemplateError("the test needs a value to test against");
  }
  return *bound[0];
}

template <bool (*holds)(const Value&)>
Result Check(Runtime&, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("a test", arguments, {}).status());
  return holds(value);
}

template <Operator operation>
Result CompareWith(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Value other, OnlyArgument(arguments));
  return Compare(runtime, operation, value, other);
}

bool IsDefined(const Value& value) { return !value.IsUndefined(); }
bool IsUndefinedValue(const Value& value) { return value.IsUndefined(); }
bool IsNone(const Value& value) { return value.Is(Kind::kNone); }
bool IsBoolean(const Value& value) { return value.Is(Kind::kBoolean); }
bool IsTrueValue(const Value& value) { return IsBoolean(value) && value.boolean(); }
bool IsFalseValue(const Value& value) { return IsBoolean(value) && !value.boolean(); }
bool IsInteger(const Value& value) { return value.Is(Kind::kInteger); }
bool IsFloat(const Value& value) { return value.Is(Kind::kFloat); }
bool IsNumber(const Value& value) { return value.IsNumber(); }
bool IsMapping(const Value& value) { return value.Is(Kind::kMap); }
bool IsEscaped(const Value& value) { return value.IsMarkup(); }

bool IsStringValue(const Value& value) {
  return value.IsString() && value.string().flavor != StringFlavor::kBytes;
}

bool IsSequence(const Value& value) {
  return value.IsUndefined() || value.IsString() || value.Is(Kind::kMap) ||
         value.Is(Kind::kRange) || (value.Is(Kind::kSequence) && value.AsSequence()->IsIndexable());
}

bool IsIterable(const Value& value) {
  return IsSequence(value) || value.Is(Kind::kSequence) || value.Is(Kind::kLoop);
}

bool IsCallable(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kMacro:
    case Kind::kFunction:
    case Kind::kMethod:
    case Kind::kLoop:
    case Kind::kJoiner:
      return true;
    default:
      return false;
  }
}

Result DivisibleBy(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Value divisor, OnlyArgument(arguments));
  ASSIGN_OR_RETURN(const Value rest, Arithmetic(runtime, Operator::kModulo, value, divisor));
  return Equals(runtime, rest, Value::Of(Integer{0}));
}

template <int rest_wanted>
Result HasParity(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("a test", arguments, {}).status());
  ASSIGN_OR_RETURN(const Value rest,
                   Arithmetic(runtime, Operator::kModulo, value, Value::Of(Integer{2})));
  return Equals(runtime, rest, Value::Of(Integer{rest_wanted}));
}

// str(value).islower() and the like.
Result CheckCase(Runtime& runtime, const Value& value, const Arguments& arguments,
                 std::string_view method) {
  ASSIGN_OR_RETURN(const Value text, ApplyFilter(runtime, "string", value, {}));
  ASSIGN_OR_RETURN(const Value answer,
                   FindStringMethod(method)->function(runtime, text, arguments));
  return answer.boolean();
}

Result IsLowerCase(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return CheckCase(runtime, value, arguments, "islower");
}

Result IsUpperCase(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return CheckCase(runtime, value, arguments, "isupper");
}

Result IsSameAs(Runtime&, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Value other, OnlyArgument(arguments));
  return value.kind() == other.kind() && KeysEqual(value, other);
}

Result IsFilterName(Runtime&, const Value& value, const Arguments&) {
  return value.IsString() && FindFilter(value.bytes()) != nullptr;
}

Result IsTestName(Runtime&, const Value& value, const Arguments&) {
  return value.IsString() && FindTest(value.bytes()) != nullptr;
}

struct TestEntry {
  std::string_view name;
  TestFunction function;
};

constexpr TestEntry kTests[] = {
    {"!=", CompareWith<Operator::kNotEqual>},
    {"<", CompareWith<Operator::kLess>},
    {"<=", CompareWith<Operator::kLessEqual>},
    {"==", CompareWith<Operator::kEqual>},
    {">", CompareWith<Operator::kGreater>},
    {">=", CompareWith<Operator::kGreaterEqual>},
    {"boolean", Check<IsBoolean>},
    {"callable", Check<IsCallable>},
    {"defined", Check<IsDefined>},
    {"divisibleby", DivisibleBy},
    {"eq", CompareWith<Operator::kEqual>},
    {"equalto", CompareWith<Operator::kEqual>},
    {"escaped", Check<IsEscaped>},
    {"even", HasParity<0>},
    {"false", Check<IsFalseValue>},
    {"filter", IsFilterName},
    {"float", Check<IsFloat>},
    {"ge", CompareWith<Operator::kGreaterEqual>},
    {"greaterthan", CompareWith<Operator::kGreater>},
    {"gt", CompareWith<Operator::kGreater>},
    {"in", CompareWith<Operator::kIn>},
    {"integer", Check<IsInteger>},
    {"iterable", Check<IsIterable>},
    {"le", CompareWith<Operator::kLessEqual>},
    {"lessthan", CompareWith<Operator::kLess>},
    {"lower", IsLowerCase},
    {"lt", CompareWith<Operator::kLess>},
    {"mapping", Check<IsMapping>},
    {"ne", CompareWith<Operator::kNotEqual>},
    {"none", Check<IsNone>},
    {"number", Check<IsNumber>},
    {"odd", HasParity<1>},
    {"sameas", IsSameAs},
    {"sequence", Check<IsSequence>},
    {"string", Check<IsStringValue>},
    {"test", IsTestName},
    {"true", Check<IsTrueValue>},
    {"undefined", Check<IsUndefinedValue>},
    {"upper", IsUpperCase},
};

}  // namespace

TestFunction FindTest(std::string_view name) {
  for (const TestEntry& entry : kTests) {
    if (entry.name == name) {
      return entry.function;
    }
  }
  return nullptr;
}

}  // namespace trireme::text::jinja
