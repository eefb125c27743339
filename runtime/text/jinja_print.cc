#include "runtime/text/jinja_print.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_strings.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

void AppendEscaped(char32_t c, std::string& out) {
  switch (c) {
    case '\n':
      out.append("\\n");
      return;
    case '\r':
      out.append("\\r");
      return;
    case '\t':
      out.append("\\t");
      return;
    default:
      break;
  }
  const unsigned int code_point = static_cast<unsigned int>(c);
  if (code_point < 0x100) {
    absl::StrAppendFormat(&out, "\\x%02x", code_point);
  } else if (code_point < 0x10000) {
    absl::StrAppendFormat(&out, "\\u%04x", code_point);
  } else {
    absl::StrAppendFormat(&out, "\\U%08x", code_point);
  }
}

std::string QuotedBytes(std::string_view bytes) {
  std::string out = "b'";
  for (const char c : bytes) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '\\' || c == '\'') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20 || byte >= 0x7F) {
      AppendEscaped(byte, out);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('\'');
  return out;
}

absl::Status AppendSequence(Runtime& runtime, const Sequence& sequence, int depth,
                            std::string& out) {
  std::string_view open = "[";
  std::string_view close = "]";
  switch (sequence.flavor) {
    case SequenceFlavor::kList:
      break;
    case SequenceFlavor::kTuple:
    case SequenceFlavor::kGroup:
      open = "(";
      close = sequence.items.size() == 1 ? ",)" : ")";
      break;
    case SequenceFlavor::kKeys:
      open = "dict_keys([";
      close = "])";
      break;
    case SequenceFlavor::kValues:
      open = "dict_values([";
      close = "])";
      break;
    case SequenceFlavor::kItems:
      open = "dict_items([";
      close = "])";
      break;
    case SequenceFlavor::kGenerator:
      out.append("<generator>");
      return absl::OkStatus();
  }
  out.append(open);
  std::string_view separator;
  for (const Value& item : sequence.items) {
    out.append(separator);
    RETURN_IF_ERROR(AppendRepr(runtime, item, depth + 1, out));
    separator = ", ";
  }
  out.append(close);
  return absl::OkStatus();
}

absl::Status AppendMap(Runtime& runtime, const Map& map, int depth, std::string& out) {
  out.push_back('{');
  std::string_view separator;
  for (const auto& [key, value] : map.entries) {
    out.append(separator);
    RETURN_IF_ERROR(AppendRepr(runtime, key, depth + 1, out));
    out.append(": ");
    RETURN_IF_ERROR(AppendRepr(runtime, value, depth + 1, out));
    separator = ", ";
  }
  out.push_back('}');
  return absl::OkStatus();
}

// What has no literal: ranges, namespaces, loops and what can be called.
absl::Status AppendObject(Runtime& runtime, const Value& value, int depth, std::string& out) {
  switch (value.kind()) {
    case Kind::kRange: {
      const Range* range = static_cast<const Range*>(value.object());
      AppendJoined(out, "range(", IntegerText(range->start), ", ", IntegerText(range->stop));
      AppendJoined(out, range->step == 1 ? "" : ", " + IntegerText(range->step), ")");
      return absl::OkStatus();
    }
    case Kind::kNamespace:
      out.append("<Namespace ");
      RETURN_IF_ERROR(AppendMap(runtime, static_cast<const Namespace*>(value.object())->attributes,
                                depth, out));
      out.append(">");
      return absl::OkStatus();
    case Kind::kLoop: {
      const Loop* loop = static_cast<const Loop*>(value.object());
      AppendJoined(out, "<LoopContext ", loop->index + 1, "/", loop->items.size(), ">");
      return absl::OkStatus();
    }
    default:
      AppendJoined(out, "<", TypeName(value), ">");
      return absl::OkStatus();
  }
}

}  // namespace

std::string IntegerText(Integer value) {
  std::string digits;
  const bool is_negative = value < 0;
  do {
    const int digit = static_cast<int>(value % 10);
    digits.push_back(static_cast<char>('0' + (digit < 0 ? -digit : digit)));
    value /= 10;
  } while (value != 0);
  if (is_negative) {
    digits.push_back('-');
  }
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string FloatText(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-inf" : "inf";
  }
  char buffer[40];
  const auto written =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<size_t>(written.ptr - buffer));
  const size_t exponent_begin = text.find('e');
  int exponent = 0;
  const size_t exponent_digits = exponent_begin + (text[exponent_begin + 1] == '+' ? 2 : 1);
  std::from_chars(text.data() + exponent_digits, text.data() + text.size(), exponent);
  std::string digits;
  for (const char c : text.substr(0, exponent_begin)) {
    if (c >= '0' && c <= '9') {
      digits.push_back(c);
    }
  }
  const std::string sign = std::signbit(value) ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    const std::string fraction = digits.size() > 1 ? "." + digits.substr(1) : "";
    return absl::StrFormat("%s%c%se%c%02d", sign, digits[0], fraction, exponent < 0 ? '-' : '+',
                           std::abs(exponent));
  }
  if (exponent < 0) {
    return Joined(sign, "0.", std::string(static_cast<size_t>(-exponent - 1), '0'), digits);
  }
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    digits.append(whole - digits.size(), '0');
    return Joined(sign, digits, ".0");
  }
  return Joined(sign, digits.substr(0, whole), ".", digits.substr(whole));
}

std::string QuotedText(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  for (size_t offset = 0; offset < text.size();) {
    const DecodedCharacter character = DecodeAt(text, offset);
    if (character.code_point == static_cast<unsigned char>(quote) || character.code_point == '\\') {
      out.push_back('\\');
      out.push_back(text[offset]);
    } else if (IsPrintable(character.code_point)) {
      out.append(text.substr(offset, character.bytes));
    } else {
      AppendEscaped(character.code_point, out);
    }
    offset += character.bytes;
  }
  out.push_back(quote);
  return out;
}

absl::Status AppendRepr(Runtime& runtime, const Value& value, int depth, std::string& out) {
  if (depth > kDataDepthMax) {
    return absl::ResourceExhaustedError(
        Joined("the data is nested deeper than the limit of ", kDataDepthMax));
  }
  RETURN_IF_ERROR(runtime.Spend(1));
  switch (value.kind()) {
    case Kind::kUndefined:
      out.append("Undefined");
      return absl::OkStatus();
    case Kind::kNone:
      out.append("None");
      return absl::OkStatus();
    case Kind::kBoolean:
      out.append(value.boolean() ? "True" : "False");
      return absl::OkStatus();
    case Kind::kInteger:
      out.append(IntegerText(value.integer()));
      return absl::OkStatus();
    case Kind::kFloat:
      out.append(FloatText(value.real()));
      return absl::OkStatus();
    case Kind::kString: {
      // The usual escape is four characters long.
      RETURN_IF_ERROR(runtime.SpendProduct(static_cast<Integer>(value.text().footprint()), 4));
      const StringFlavor flavor = value.string().flavor;
      if (flavor == StringFlavor::kBytes) {
        out.append(QuotedBytes(value.bytes()));
      } else if (flavor == StringFlavor::kMarkup) {
        AppendJoined(out, "Markup(", QuotedText(value.bytes()), ")");
      } else {
        out.append(QuotedText(value.bytes()));
      }
      return absl::OkStatus();
    }
    case Kind::kSequence:
      return AppendSequence(runtime, *value.AsSequence(), depth, out);
    case Kind::kMap:
      return AppendMap(runtime, *value.AsMap(), depth, out);
    default:
      return AppendObject(runtime, value, depth, out);
  }
}

absl::StatusOr<TracedText> ToText(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return TracedText();
    case Kind::kString:
      if (value.string().flavor == StringFlavor::kBytes) {
        return TracedText(QuotedBytes(value.bytes()), value.text().WeakestOrigin());
      }
      RETURN_IF_ERROR(runtime.SpendBytes(value.text().footprint()));
      return value.text();
    case Kind::kNone:
      return TracedText("None", Origin::kTrusted);
    case Kind::kBoolean:
      return TracedText(value.boolean() ? "True" : "False", Origin::kTrusted);
    case Kind::kInteger:
      return TracedText(IntegerText(value.integer()), Origin::kTrusted);
    case Kind::kFloat:
      return TracedText(FloatText(value.real()), Origin::kTrusted);
    default: {
      std::string out;
      RETURN_IF_ERROR(AppendRepr(runtime, value, 0, out));
      return TracedText(std::move(out), Origin::kUntrusted);
    }
  }
}

absl::StatusOr<Value> ToString(Runtime& runtime, const Value& value) {
  if (value.IsString() && value.string().flavor != StringFlavor::kBytes) {
    return value;
  }
  ASSIGN_OR_RETURN(TracedText text, ToText(runtime, value));
  return runtime.String(std::move(text));
}

absl::StatusOr<TracedText> EscapeHtml(Runtime& runtime, const TracedText& text) {
  constexpr size_t kLongestEntity = 5;
  RETURN_IF_ERROR(runtime.SpendProduct(static_cast<Integer>(text.footprint()), kLongestEntity));
  TracedText escaped;
  for (const TracedText::Run& run : text.Runs()) {
    std::string out;
    for (const char c : text.bytes().substr(run.begin, run.end - run.begin)) {
      switch (c) {
        case '&':
          out.append("&amp;");
          break;
        case '<':
          out.append("&lt;");
          break;
        case '>':
          out.append("&gt;");
          break;
        case '"':
          out.append("&#34;");
          break;
        case '\'':
          out.append("&#39;");
          break;
        default:
          out.push_back(c);
      }
    }
    escaped.Append(out, run.origin);
  }
  return escaped;
}

}  // namespace trireme::text::jinja
