#include "runtime/text/jinja_filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_arithmetic.h"
#include "runtime/text/jinja_format.h"
#include "runtime/text/jinja_json.h"
#include "runtime/text/jinja_methods.h"
#include "runtime/text/jinja_ordering_filters.h"
#include "runtime/text/jinja_print.h"
#include "runtime/text/jinja_sequence_filters.h"
#include "runtime/text/jinja_text_filters.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

using Result = absl::StatusOr<Value>;

Result Absolute(Runtime&, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("abs", arguments, {}).status());
  RETURN_IF_ERROR(RequireDefined(value));
  if (!value.IsNumber()) {
    return TemplateError("abs needs a number, not ", TypeName(value));
  }
  if (value.Is(Kind::kFloat)) {
    return Value::Of(std::fabs(value.real()));
  }
  return value.AsInteger() < 0 ? Negate(value) : Value::Of(value.AsInteger());
}

Result AttributeFilter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("attr", arguments, {"name"}));
  if (bound[0] == nullptr || !bound[0]->IsString()) {
    return TemplateError("attr needs the name of an attribute");
  }
  return Member(runtime, value, *bound[0]);
}

Result Default(Runtime&, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BindArguments("default", arguments, {"default_value", "boolean"}));
  const bool replaces = value.IsUndefined() || (IsTrueArgument(bound[1]) && !IsTrue(value));
  if (!replaces) {
    return value;
  }
  return bound[0] != nullptr ? *bound[0] : Value::Of(std::make_shared<const StringData>());
}

// The text without surrounding white space and without underscores between digits; nothing when
// they stand elsewhere.
std::optional<std::string> CleanNumber(std::string_view text) {
  const StripRange range = StripSpace(text, /*left=*/true, /*right=*/true);
  const std::string_view stripped = text.substr(range.begin, range.end - range.begin);
  std::string clean;
  for (size_t i = 0; i < stripped.size(); ++i) {
    if (stripped[i] != '_') {
      clean.push_back(stripped[i]);
      continue;
    }
    const bool is_between = i > 0 && i + 1 < stripped.size() &&
                            absl::ascii_isalnum(static_cast<unsigned char>(stripped[i - 1])) &&
                            absl::ascii_isalnum(static_cast<unsigned char>(stripped[i + 1]));
    if (!is_between) {
      return std::nullopt;
    }
  }
  return clean;
}

std::optional<double> ReadFloat(std::string_view text) {
  std::optional<std::string> clean = CleanNumber(text);
  if (!clean.has_value() || clean->empty()) {
    return std::nullopt;
  }
  const size_t sign = (*clean)[0] == '+' ? 1 : 0;
  const std::string lower = absl::AsciiStrToLower(clean->substr(sign));
  if (lower.find_first_of("xp") != std::string::npos || (sign == 1 && lower.substr(0, 1) == "-")) {
    return std::nullopt;
  }
  double number = 0;
  const auto read = std::from_chars(lower.data(), lower.data() + lower.size(), number);
  if (read.ec == std::errc::invalid_argument || read.ptr != lower.data() + lower.size()) {
    return std::nullopt;
  }
  if (read.ec == std::errc::result_out_of_range) {
    number = lower.find("e-") != std::string::npos ? 0.0 : HUGE_VAL;
    return lower[0] == '-' ? -number : number;
  }
  return number;
}

std::optional<Integer> ReadInteger(std::string_view text, int base) {
  std::optional<std::string> clean = CleanNumber(text);
  if (!clean.has_value()) {
    return std::nullopt;
  }
  std::string digits = absl::AsciiStrToLower(*clean);
  const bool is_negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    digits.erase(0, 1);
  }
  const std::string prefix = digits.substr(0, 2);
  const int prefix_base = prefix == "0x" ? 16 : prefix == "0o" ? 8 : prefix == "0b" ? 2 : 0;
  if (prefix_base != 0 && (base == prefix_base || base == 0)) {
    digits.erase(0, 2);
    base = prefix_base;
  }
  base = base == 0 ? 10 : base;
  if (digits.empty()) {
    return std::nullopt;
  }
  Integer number = 0;
  for (const char c : digits) {
    const int digit = absl::ascii_isdigit(static_cast<unsigned char>(c))   ? c - '0'
                      : absl::ascii_isalpha(static_cast<unsigned char>(c)) ? c - 'a' + 10
                                                                           : 99;
    if (digit >= base || __builtin_mul_overflow(number, Integer{base}, &number) ||
        __builtin_add_overflow(number, Integer{digit}, &number)) {
      return std::nullopt;
    }
  }
  return is_negative ? -number : number;
}

std::optional<Integer> Truncate(double value) {
  if (!(std::fabs(value) < 1e38)) {
    return std::nullopt;
  }
  return static_cast<Integer>(value);
}

Result ToInteger(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("int", arguments, {"default", "base"}));
  RETURN_IF_ERROR(RequireDefined(value));
  ASSIGN_OR_RETURN(const Integer base, IntegerOr("int", bound[1], 10));
  if (base != 0 && (base < 2 || base > 36)) {
    return TemplateError("int: the base must be 0 or from 2 to 36");
  }
  std::optional<Integer> number;
  if (value.IsString()) {
    RETURN_IF_ERROR(runtime.SpendBytes(value.text().footprint()));
    number = ReadInteger(value.bytes(), static_cast<int>(base));
    if (!number.has_value()) {
      const std::optional<double> real = ReadFloat(value.bytes());
      number = real.has_value() ? Truncate(*real) : std::nullopt;
    }
  } else if (value.IsNumber()) {
    number = value.Is(Kind::kFloat) ? Truncate(value.real()) : value.AsInteger();
  }
  return number.has_value()    ? Value::Of(*number)
         : bound[0] != nullptr ? *bound[0]
                               : Value::Of(Integer{0});
}

Result ToFloat(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("float", arguments, {"default"}));
  RETURN_IF_ERROR(RequireDefined(value));
  std::optional<double> number;
  if (value.IsString()) {
    RETURN_IF_ERROR(runtime.SpendBytes(value.text().footprint()));
    number = ReadFloat(value.bytes());
  } else if (value.IsNumber()) {
    number = value.AsDouble();
  }
  return number.has_value() ? Value::Of(*number) : bound[0] != nullptr ? *bound[0] : Value::Of(0.0);
}

Result Round(Runtime&, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("round", arguments, {"precision", "method"}));
  RETURN_IF_ERROR(RequireDefined(value));
  ASSIGN_OR_RETURN(const Integer wanted, IntegerOr("round", bound[0], 0));
  if (!value.IsNumber()) {
    return TemplateError("round needs a number, not ", TypeName(value));
  }
  const int precision = static_cast<int>(std::clamp<Integer>(wanted, -330, 330));
  const std::string_view method =
      bound[1] != nullptr && bound[1]->IsString() ? bound[1]->bytes() : "common";
  if (method == "ceil" || method == "floor") {
    const double scale = std::pow(10.0, precision);
    const double scaled = value.AsDouble() * scale;
    return Value::Of((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
  }
  if (method != "common") {
    return TemplateError("round: the method must be 'common', 'ceil' or 'floor'");
  }
  if (!value.Is(Kind::kFloat) && precision >= 0) {
    return Value::Of(value.AsInteger());
  }
  if (precision < 0) {
    const double scale = std::pow(10.0, -precision);
    const double rounded = std::nearbyint(value.AsDouble() / scale) * scale;
    return value.Is(Kind::kFloat) ? Value::Of(rounded) : Value::Of(static_cast<Integer>(rounded));
  }
  if (!std::isfinite(value.real())) {
    return value;
  }
  // Decimal rounding of the exact binary value, as Python does.
  const std::string digits = absl::StrFormat("%.*f", precision, value.real());
  double rounded = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), rounded);
  return Value::Of(rounded);
}

absl::StatusOr<std::optional<std::string>> IndentOption(Runtime& runtime, const Value* indent) {
  if (indent == nullptr || indent->Is(Kind::kNone)) {
    return std::nullopt;
  }
  if (indent->IsString()) {
    return std::string(indent->bytes());
  }
  ASSIGN_OR_RETURN(const Integer width, IntegerOr("tojson", indent, 0));
  RETURN_IF_ERROR(runtime.SpendProduct(width, 1));
  return std::string(static_cast<size_t>(std::max<Integer>(width, 0)), ' ');
}

Result ToJsonFilter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(
      const auto bound,
      BindArguments("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.ensure_ascii = IsTrueArgument(bound[0]);
  style.sort_keys = IsTrueArgument(bound[3]);
  ASSIGN_OR_RETURN(style.indent, IndentOption(runtime, bound[1]));
  if (bound[2] != nullptr && !bound[2]->Is(Kind::kNone)) {
    ASSIGN_OR_RETURN(const std::vector<Value> pair, runtime.Iterate(*bound[2]));
    if (pair.size() != 2 || !pair[0].IsString() || !pair[1].IsString()) {
      return TemplateError("tojson: separators must be two strings");
    }
    style.item_separator = std::string(pair[0].bytes());
    style.key_separator = std::string(pair[1].bytes());
  }
  ASSIGN_OR_RETURN(std::string text, ToJson(runtime, value, style));
  return runtime.String(std::move(text), Origin::kUntrusted);
}

Result FromJsonFilter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("from_json", arguments, {}).status());
  RETURN_IF_ERROR(RequireDefined(value));
  if (!value.IsString()) {
    return TemplateError("from_json needs a string, not ", TypeName(value));
  }
  RETURN_IF_ERROR(runtime.SpendProduct(static_cast<Integer>(value.text().footprint()), 16));
  ASSIGN_OR_RETURN(const nlohmann::ordered_json document, ParseJson(value.bytes()));
  return FromJson(runtime, document, Origin::kUntrusted);
}

Result PrettyPrint(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("pprint", arguments, {}).status());
  std::string text;
  RETURN_IF_ERROR(AppendRepr(runtime, value, 0, text));
  return runtime.String(std::move(text), Origin::kUntrusted);
}

constexpr FilterEntry kFilters[] = {
    {"abs", Absolute},  {"attr", AttributeFilter},     {"d", Default},     {"default", Default},
    {"float", ToFloat}, {"from_json", FromJsonFilter}, {"int", ToInteger}, {"pprint", PrettyPrint},
    {"round", Round},   {"tojson", ToJsonFilter},
};

}  // namespace

FilterFunction FindFilter(std::string_view name) {
  for (const absl::Span<const FilterEntry> entries :
       {absl::Span<const FilterEntry>(kFilters), TextFilters(), SequenceFilters(),
        OrderingFilters()}) {
    for (const FilterEntry& entry : entries) {
      if (entry.name == name) {
        return entry.function;
      }
    }
  }
  return nullptr;
}

absl::StatusOr<Value> ApplyFilter(Runtime& runtime, std::string_view name, const Value& value,
                                  const Arguments& arguments) {
  const FilterFunction filter = FindFilter(name);
  if (filter == nullptr) {
    return TemplateError("there is no filter named '", name, "'");
  }
  return filter(runtime, value, arguments);
}

}  // namespace trireme::text::jinja
