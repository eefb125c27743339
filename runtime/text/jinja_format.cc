#include "runtime/text/jinja_format.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_conversion.h"
#include "runtime/text/jinja_elements.h"
#include "runtime/text/jinja_print.h"
#include "runtime/text/jinja_strings.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

// Reads a decimal number at `position`; a number too long to be meant counts as a huge one.
int64_t ReadNumber(std::string_view text, size_t& position) {
  int64_t number = 0;
  while (position < text.size() && text[position] >= '0' && text[position] <= '9') {
    number = std::min<int64_t>(number * 10 + (text[position] - '0'), int64_t{1} << 40);
    ++position;
  }
  return number;
}

// Hands out the values of a "%" formatting in order.
class PercentValues {
 public:
  explicit PercentValues(const Value& values) : values_(values) {
    const Sequence* sequence = values.AsSequence();
    tuple_ = sequence != nullptr && (sequence->flavor == SequenceFlavor::kTuple ||
                                     sequence->flavor == SequenceFlavor::kGroup)
                 ? sequence
                 : nullptr;
  }

  absl::StatusOr<Value> Next() {
    if (tuple_ == nullptr ? next_ > 0 : next_ >= tuple_->items.size()) {
      return TemplateError("not enough values for the format string");
    }
    return tuple_ == nullptr ? (++next_, values_) : tuple_->items[next_++];
  }

  absl::StatusOr<Value> Named(std::string_view name) {
    const Map* map = values_.AsMap();
    if (map == nullptr) {
      return TemplateError("the format string needs a mapping for %(", name, ")");
    }
    const Value* found = map->Find(name);
    if (found == nullptr) {
      return TemplateError("the format string asks for '", name, "', which the mapping lacks");
    }
    uses_names_ = true;
    return *found;
  }

  absl::Status ExpectAllUsed() const {
    const bool has_rest =
        tuple_ != nullptr ? next_ < tuple_->items.size()
                          : next_ == 0 && !values_.Is(Kind::kMap) && !values_.Is(Kind::kSequence);
    if (has_rest && !uses_names_) {
      return TemplateError("not all values were used by the format string");
    }
    return absl::OkStatus();
  }

 private:
  const Value& values_;
  const Sequence* tuple_;
  size_t next_ = 0;
  bool uses_names_ = false;
};

absl::StatusOr<int64_t> StarOrNumber(std::string_view format, size_t& position,
                                     PercentValues& values) {
  if (position >= format.size() || format[position] != '*') {
    return ReadNumber(format, position);
  }
  ++position;
  ASSIGN_OR_RETURN(const Value value, values.Next());
  if (!value.Is(Kind::kInteger)) {
    return TemplateError("'*' in a format string needs an integer, not ", TypeName(value));
  }
  return static_cast<int64_t>(
      std::clamp<Integer>(value.integer(), -(Integer{1} << 40), Integer{1} << 40));
}

void ReadPercentFlags(std::string_view format, size_t& position, Conversion& how) {
  for (; position < format.size(); ++position) {
    switch (format[position]) {
      case '-':
        how.align = '<';
        continue;
      case '+':
        how.sign = '+';
        continue;
      case ' ':
        how.sign = how.sign == '+' ? '+' : ' ';
        continue;
      case '0':
        if (how.align != '<') {
          how.fill = "0";
          how.align = '=';
        }
        continue;
      case '#':
        how.alternate = true;
        continue;
      default:
        return;
    }
  }
}

absl::StatusOr<TracedText> ConvertPercent(Runtime& runtime, const Value& value, Conversion how) {
  switch (how.type) {
    case 's': {
      how.fill = " ";
      how.align = how.align == '<' ? '<' : '>';
      ASSIGN_OR_RETURN(const TracedText text, ToText(runtime, value));
      return FormatText(runtime, text, how, '>');
    }
    case 'r':
    case 'a': {
      std::string out;
      RETURN_IF_ERROR(AppendRepr(runtime, value, 0, out));
      how.fill = " ";
      how.align = how.align == '<' ? '<' : '>';
      return FormatText(runtime, TracedText(std::move(out), Origin::kUntrusted), how, '>');
    }
    case 'c': {
      std::string out;
      if (value.IsString() && CountCharacters(value.bytes()) == 1) {
        return FormatText(runtime, value.text(), how, '>');
      }
      if (!value.Is(Kind::kInteger) || value.integer() < 0 || value.integer() > 0x10FFFF) {
        return TemplateError("%c needs a character or a code point");
      }
      AppendUtf8(static_cast<char32_t>(value.integer()), out);
      return FormatText(runtime, TracedText(std::move(out), Origin::kUntrusted), how, '>');
    }
    default:
      break;
  }
  if (!value.IsNumber()) {
    RETURN_IF_ERROR(RequireDefined(value));
    return TemplateError("%", std::string(1, how.type), " needs a number, not ", TypeName(value));
  }
  const bool wants_integer = std::string_view("diuxXo").find(how.type) != std::string_view::npos;
  if (!wants_integer) {
    return FormatFloat(runtime, value.AsDouble(), how);
  }
  if (!value.Is(Kind::kFloat)) {
    return FormatInteger(runtime, value.AsInteger(), how);
  }
  if (std::string_view("diu").find(how.type) == std::string_view::npos ||
      !(std::fabs(value.real()) < 1e38)) {
    return TemplateError("%", std::string(1, how.type), " needs an integer, not the float ",
                         FloatText(value.real()));
  }
  return FormatInteger(runtime, static_cast<Integer>(value.real()), how);
}

// The conversion after a '%' at `position`, which moves behind it.
absl::StatusOr<TracedText> OnePercent(Runtime& runtime, std::string_view format, size_t& position,
                                      PercentValues& values, bool escapes) {
  std::optional<Value> named;
  if (position < format.size() && format[position] == '(') {
    const size_t close = format.find(')', position);
    if (close == std::string_view::npos) {
      return TemplateError("a format string has '%(' without ')'");
    }
    ASSIGN_OR_RETURN(named, values.Named(format.substr(position + 1, close - position - 1)));
    position = close + 1;
  }
  Conversion how;
  ReadPercentFlags(format, position, how);
  ASSIGN_OR_RETURN(how.width, StarOrNumber(format, position, values));
  if (how.width < 0) {
    how.align = '<';
    how.width = -how.width;
  }
  if (position < format.size() && format[position] == '.') {
    ++position;
    ASSIGN_OR_RETURN(const int64_t precision, StarOrNumber(format, position, values));
    how.precision = std::max<int64_t>(precision, 0);
  }
  while (position < format.size() &&
         (format[position] == 'l' || format[position] == 'h' || format[position] == 'L')) {
    ++position;
  }
  if (position >= format.size()) {
    return TemplateError("a format string ends within a conversion");
  }
  how.type = format[position++];
  if (how.type == '%') {
    return TracedText("%", Origin::kTrusted);
  }
  if (std::string_view("diuxXoeEfFgGsrac").find(how.type) == std::string_view::npos) {
    return TemplateError("unsupported conversion '%", std::string(1, how.type),
                         "' in a format string");
  }
  if (!named.has_value()) {
    ASSIGN_OR_RETURN(named, values.Next());
  }
  ASSIGN_OR_RETURN(TracedText text, ConvertPercent(runtime, *named, how));
  if (escapes && !named->IsMarkup()) {
    return EscapeHtml(runtime, text);
  }
  return text;
}

// "[[fill]align][sign][#][0][width][grouping][.precision][type]"
absl::StatusOr<Conversion> ReadSpecification(std::string_view text) {
  constexpr std::string_view kAligns = "<>=^";
  Conversion how;
  size_t position = 0;
  const size_t first = text.empty() ? 0 : DecodeAt(text, 0).bytes;
  if (first < text.size() && kAligns.find(text[first]) != std::string_view::npos) {
    how.fill = std::string(text.substr(0, first));
    how.align = text[first];
    position = first + 1;
  } else if (!text.empty() && kAligns.find(text[0]) != std::string_view::npos) {
    how.align = text[0];
    position = 1;
  }
  const auto at = [&text, &position](std::string_view characters) {
    return position < text.size() && characters.find(text[position]) != std::string_view::npos;
  };
  if (at("+- ")) {
    how.sign = text[position++];
  }
  if (at("#")) {
    how.alternate = true;
    ++position;
  }
  if (at("0")) {
    how.fill = how.align == 0 ? "0" : how.fill;
    how.align = how.align == 0 ? '=' : how.align;
    ++position;
  }
  how.width = ReadNumber(text, position);
  if (at(",_")) {
    how.grouping = text[position++];
  }
  if (at(".")) {
    ++position;
    how.precision = ReadNumber(text, position);
  }
  if (position < text.size()) {
    how.type = text[position++];
  }
  if (position != text.size()) {
    return TemplateError("'", text, "' is not a format specification");
  }
  return how;
}

absl::StatusOr<TracedText> ConvertBraces(Runtime& runtime, const Value& value,
                                         std::string_view specification) {
  ASSIGN_OR_RETURN(Conversion how, ReadSpecification(specification));
  if (value.IsNumber() && !(value.Is(Kind::kBoolean) && specification.empty())) {
    const bool wants_float = std::string_view("eEfFgG%").find(how.type) != std::string_view::npos;
    if (value.Is(Kind::kFloat) || (wants_float && how.type != 0)) {
      return FormatFloat(runtime, value.AsDouble(), how);
    }
    if (how.type == 0 || std::string_view("dxXobn").find(how.type) != std::string_view::npos) {
      return FormatInteger(runtime, value.AsInteger(), how);
    }
    return TemplateError("unknown format code '", std::string(1, how.type), "' for an integer");
  }
  if (how.type != 0 && how.type != 's') {
    return TemplateError("unknown format code '", std::string(1, how.type),
                         "' for a value of type ", TypeName(value));
  }
  ASSIGN_OR_RETURN(const TracedText text, ToText(runtime, value));
  how.align = how.align == '=' ? '<' : how.align;
  return FormatText(runtime, text, how, '<');
}

// One "{...}" field; `automatic` is the next position of a "{}".
absl::StatusOr<Value> FieldValue(Runtime& runtime, std::string_view name, size_t& automatic,
                                 const Arguments& arguments) {
  const size_t name_end = std::min(name.find_first_of(".["), name.size());
  const std::string_view head = name.substr(0, name_end);
  Value value;
  if (head.empty() || (head[0] >= '0' && head[0] <= '9')) {
    size_t position = 0;
    const size_t index =
        head.empty() ? automatic++ : static_cast<size_t>(ReadNumber(head, position));
    if (index >= arguments.positional.size()) {
      return TemplateError("the format string asks for value ", index, ", but there are ",
                           arguments.positional.size());
    }
    value = arguments.positional[index];
  } else {
    const auto found =
        std::find_if(arguments.keywords.begin(), arguments.keywords.end(),
                     [head](const auto& keyword) { return keyword.first.bytes() == head; });
    if (found == arguments.keywords.end()) {
      return TemplateError("the format string asks for '", head, "', which was not given");
    }
    value = found->second;
  }
  size_t position = name_end;
  while (position < name.size()) {
    const bool is_element = name[position] == '[';
    const size_t end = is_element ? name.find(']', position)
                                  : std::min(name.find_first_of(".[", position + 1), name.size());
    if (end == std::string_view::npos) {
      return TemplateError("a format string has '[' without ']'");
    }
    const std::string_view key = name.substr(position + 1, end - position - 1);
    size_t digits = 0;
    const int64_t index = ReadNumber(key, digits);
    const bool is_index = is_element && !key.empty() && digits == key.size();
    ASSIGN_OR_RETURN(Value key_value, runtime.String(std::string(key), Origin::kUntrusted));
    ASSIGN_OR_RETURN(value,
                     Element(runtime, value, is_index ? Value::Of(Integer{index}) : key_value));
    RETURN_IF_ERROR(RequireDefined(value));
    position = is_element ? end + 1 : end;
  }
  return value;
}

}  // namespace

absl::StatusOr<Value> FormatPercent(Runtime& runtime, const Value& format, const Value& values) {
  const TracedText& text = format.text();
  const std::string_view bytes = text.bytes();
  PercentValues source(values);
  TracedText out;
  size_t position = 0;
  while (position < bytes.size()) {
    const size_t percent = std::min(bytes.find('%', position), bytes.size());
    out.AppendSlice(text, position, percent);
    position = percent;
    if (percent < bytes.size()) {
      ++position;
      ASSIGN_OR_RETURN(TracedText piece,
                       OnePercent(runtime, bytes, position, source, format.IsMarkup()));
      RETURN_IF_ERROR(runtime.SpendGrowth(out, piece.footprint()));
      out.Append(piece);
    }
  }
  RETURN_IF_ERROR(source.ExpectAllUsed());
  return runtime.String(std::move(out), format.string().flavor);
}

absl::StatusOr<Value> FormatBraces(Runtime& runtime, const Value& format,
                                   const Arguments& arguments) {
  const TracedText& text = format.text();
  const std::string_view bytes = text.bytes();
  TracedText out;
  size_t automatic = 0;
  size_t position = 0;
  while (position < bytes.size()) {
    const size_t brace = std::min(bytes.find_first_of("{}", position), bytes.size());
    out.AppendSlice(text, position, brace);
    if (brace == bytes.size()) {
      break;
    }
    if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {
      out.AppendSlice(text, brace, brace + 1);
      position = brace + 2;
      continue;
    }
    const size_t end = bytes.find('}', brace);
    if (bytes[brace] == '}' || end == std::string_view::npos) {
      return TemplateError("a format string has a single '", bytes.substr(brace, 1), "'");
    }
    const std::string_view field = bytes.substr(brace + 1, end - brace - 1);
    const size_t colon = std::min(field.find(':'), field.size());
    const size_t bang = std::min(field.find('!'), colon);
    ASSIGN_OR_RETURN(Value value, FieldValue(runtime, field.substr(0, bang), automatic, arguments));
    if (bang < colon) {
      std::string quoted;
      if (field.substr(bang, colon - bang) == "!r") {
        RETURN_IF_ERROR(AppendRepr(runtime, value, 0, quoted));
        ASSIGN_OR_RETURN(value, runtime.String(std::move(quoted), Origin::kUntrusted));
      } else {
        ASSIGN_OR_RETURN(value, ToString(runtime, value));
      }
    }
    ASSIGN_OR_RETURN(
        TracedText piece,
        ConvertBraces(runtime, value, colon < field.size() ? field.substr(colon + 1) : ""));
    RETURN_IF_ERROR(runtime.SpendGrowth(out, piece.footprint()));
    if (format.IsMarkup() && !value.IsMarkup()) {
      ASSIGN_OR_RETURN(piece, EscapeHtml(runtime, piece));
    }
    out.Append(piece);
    position = end + 1;
  }
  return runtime.String(std::move(out), format.string().flavor);
}

}  // namespace trireme::text::jinja
