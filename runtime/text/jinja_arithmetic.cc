#include "runtime/text/jinja_arithmetic.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_format.h"
#include "runtime/text/jinja_print.h"

namespace trireme::text::jinja {
namespace {

std::string_view SignOf(Operator operation) {
  switch (operation) {
    case Operator::kAdd:
      return "+";
    case Operator::kSubtract:
      return "-";
    case Operator::kMultiply:
      return "*";
    case Operator::kDivide:
      return "/";
    case Operator::kFloorDivide:
      return "//";
    case Operator::kModulo:
      return "%";
    case Operator::kPower:
      return "**";
    default:
      return "?";
  }
}

absl::Status Overflow() {
  return TemplateError("the result is an integer that does not fit in 128 bits");
}

absl::Status TypesError(Operator operation, const Value& a, const Value& b) {
  return TemplateError("unsupported operand types for ", SignOf(operation), ": '", TypeName(a),
                       "' and '", TypeName(b), "'");
}

Integer FloorDivide(Integer a, Integer b) {
  const Integer quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

absl::StatusOr<Value> IntegerPower(Integer base, Integer exponent) {
  if (exponent < 0) {
    if (base == 0) {
      return TemplateError("zero cannot be raised to a negative power");
    }
    return Value::Of(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1 || base == -1) {
    const bool is_odd = exponent % 2 != 0;
    return Value::Of(exponent == 0 ? Integer{1} : base == -1 && !is_odd ? Integer{1} : base);
  }
  if (exponent > 127) {
    return Overflow();
  }
  Integer result = 1;
  for (Integer i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) {
      return Overflow();
    }
  }
  return Value::Of(result);
}

absl::StatusOr<Value> IntegerArithmetic(Operator operation, Integer a, Integer b) {
  Integer result = 0;
  bool overflows = false;
  switch (operation) {
    case Operator::kAdd:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case Operator::kSubtract:
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case Operator::kMultiply:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case Operator::kPower:
      return IntegerPower(a, b);
    default:
      if (b == 0) {
        return TemplateError("division by zero");
      }
      if (b == -1) {  // the one divisor whose quotient may not fit
        overflows = __builtin_sub_overflow(Integer{0}, a, &result);
        if (operation == Operator::kModulo) {
          return Value::Of(Integer{0});
        }
      } else {
        result = FloorDivide(a, b);
      }
      if (operation == Operator::kDivide) {
        return Value::Of(static_cast<double>(a) / static_cast<double>(b));
      }
      if (operation == Operator::kModulo) {
        result = a - result * b;
      }
  }
  if (overflows) {
    return Overflow();
  }
  return Value::Of(result);
}

absl::StatusOr<Value> FloatArithmetic(Operator operation, double a, double b) {
  switch (operation) {
    case Operator::kAdd:
      return Value::Of(a + b);
    case Operator::kSubtract:
      return Value::Of(a - b);
    case Operator::kMultiply:
      return Value::Of(a * b);
    case Operator::kPower:
      if (a == 0.0 && b < 0.0) {
        return TemplateError("zero cannot be raised to a negative power");
      }
      return Value::Of(std::pow(a, b));
    default:
      break;
  }
  if (b == 0.0) {
    return TemplateError("division by zero");
  }
  if (operation == Operator::kDivide) {
    return Value::Of(a / b);
  }
  double remainder = std::fmod(a, b);
  if (remainder != 0.0 && (remainder < 0.0) != (b < 0.0)) {
    remainder += b;
  }
  if (operation == Operator::kModulo) {
    return Value::Of(remainder);
  }
  return Value::Of(std::round((a - remainder) / b));
}

// a + b of strings; markup escapes the other side.
absl::StatusOr<Value> AddStrings(Runtime& runtime, const Value& a, const Value& b) {
  const bool is_markup = a.IsMarkup() || b.IsMarkup();
  const bool is_bytes = a.string().flavor == StringFlavor::kBytes;
  RETURN_IF_ERROR(runtime.SpendBytes(a.text().footprint() + b.text().footprint()));
  TracedText sum;
  sum.Reserve(a.text().size() + b.text().size());
  for (const Value* part : {&a, &b}) {
    if (is_markup && !part->IsMarkup()) {
      ASSIGN_OR_RETURN(const TracedText escaped, EscapeHtml(runtime, part->text()));
      sum.Append(escaped);
    } else {
      sum.Append(part->text());
    }
  }
  return runtime.String(std::move(sum), is_markup  ? StringFlavor::kMarkup
                                        : is_bytes ? StringFlavor::kBytes
                                                   : StringFlavor::kPlain);
}

absl::StatusOr<Value> Add(Runtime& runtime, const Value& a, const Value& b) {
  if (a.IsString() && b.IsString()) {
    const bool a_is_bytes = a.string().flavor == StringFlavor::kBytes;
    const bool b_is_bytes = b.string().flavor == StringFlavor::kBytes;
    if (a_is_bytes == b_is_bytes) {
      return AddStrings(runtime, a, b);
    }
  }
  const Sequence* left = a.AsSequence();
  const Sequence* right = b.AsSequence();
  if (left != nullptr && right != nullptr && left->IsIndexable() && right->IsIndexable() &&
      (left->flavor == SequenceFlavor::kList) == (right->flavor == SequenceFlavor::kList)) {
    RETURN_IF_ERROR(runtime.SpendProduct(
        static_cast<Integer>(left->items.size()) + static_cast<Integer>(right->items.size()),
        sizeof(Value)));
    std::vector<Value> items = left->items;
    items.insert(items.end(), right->items.begin(), right->items.end());
    return runtime.List(std::move(items), left->flavor == SequenceFlavor::kList
                                              ? SequenceFlavor::kList
                                              : SequenceFlavor::kTuple);
  }
  if (a.IsString()) {
    return TemplateError("can only concatenate ", TypeName(a), " (not \"", TypeName(b), "\") to ",
                         TypeName(a), "; turn it into a string first");
  }
  return TypesError(Operator::kAdd, a, b);
}

absl::StatusOr<Value> Repeat(Runtime& runtime, const Value& value, Integer times) {
  if (value.IsString()) {
    RETURN_IF_ERROR(runtime.SpendProduct(times, value.text().footprint()));
    TracedText repeated;
    if (times > 0 && !value.text().empty()) {
      const size_t wanted = value.text().size() * static_cast<size_t>(times);
      repeated.Reserve(wanted);
      repeated.Append(value.text());
      while (repeated.size() * 2 <= wanted) {
        const TracedText half = repeated;
        repeated.Append(half);
      }
      const TracedText whole = repeated;
      repeated.AppendSlice(whole, 0, wanted - whole.size());
    }
    return runtime.String(std::move(repeated), value.string().flavor);
  }
  const Sequence& sequence = *value.AsSequence();
  RETURN_IF_ERROR(runtime.SpendProduct(times, sequence.items.size() * sizeof(Value)));
  std::vector<Value> items;
  for (Integer i = 0; i < times && !sequence.items.empty(); ++i) {
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  }
  return runtime.List(std::move(items), sequence.flavor);
}

bool IsRepeatable(const Value& value) {
  const Sequence* sequence = value.AsSequence();
  return value.IsString() || (sequence != nullptr && sequence->IsIndexable());
}

}  // namespace

absl::StatusOr<Value> Arithmetic(Runtime& runtime, Operator operation, const Value& a,
                                 const Value& b) {
  if (operation == Operator::kModulo && a.IsString()) {
    return FormatPercent(runtime, a, b);
  }
  RETURN_IF_ERROR(RequireDefined(a));
  RETURN_IF_ERROR(RequireDefined(b));
  if (a.IsWhole() && b.IsWhole()) {
    return IntegerArithmetic(operation, a.AsInteger(), b.AsInteger());
  }
  if (a.IsNumber() && b.IsNumber()) {
    return FloatArithmetic(operation, a.AsDouble(), b.AsDouble());
  }
  if (operation == Operator::kAdd) {
    return Add(runtime, a, b);
  }
  if (operation == Operator::kMultiply && IsRepeatable(a) && b.IsWhole()) {
    return Repeat(runtime, a, b.AsInteger());
  }
  if (operation == Operator::kMultiply && a.IsWhole() && IsRepeatable(b)) {
    return Repeat(runtime, b, a.AsInteger());
  }
  return TypesError(operation, a, b);
}

absl::StatusOr<Value> Negate(const Value& value) {
  RETURN_IF_ERROR(RequireDefined(value));
  if (value.Is(Kind::kFloat)) {
    return Value::Of(-value.real());
  }
  if (!value.IsNumber()) {
    return TemplateError("unary - needs a number, not ", TypeName(value));
  }
  return IntegerArithmetic(Operator::kSubtract, 0, value.AsInteger());
}

absl::StatusOr<Value> Concatenate(Runtime& runtime, const std::vector<Value>& parts) {
  TracedText text;
  for (const Value& part : parts) {
    ASSIGN_OR_RETURN(TracedText piece, ToText(runtime, part));
    text.Append(piece);
  }
  return runtime.String(std::move(text));
}

}  // namespace trireme::text::jinja
