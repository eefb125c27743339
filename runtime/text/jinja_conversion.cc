#include "runtime/text/jinja_conversion.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_print.h"
#include "runtime/text/jinja_strings.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

// More digits than a double or a 128-bit integer has are only padding.
constexpr int64_t kPrecisionMax = 500;

absl::StatusOr<TracedText> Pad(Runtime& runtime, const TracedText& text, const Conversion& how,
                               char default_align, size_t sign_bytes) {
  const int64_t missing = how.width - CountCharacters(text.bytes());
  if (missing <= 0) {
    return text;
  }
  RETURN_IF_ERROR(runtime.SpendProduct(missing, how.fill.size()));
  const char align = how.align == 0 ? default_align : how.align;
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  const auto append_fill = [&how](TracedText& out, int64_t times) {
    for (int64_t i = 0; i < times; ++i) {
      out.Append(how.fill, Origin::kTrusted);
    }
  };
  TracedText padded;
  const size_t head = align == '=' ? sign_bytes : 0;
  padded.AppendSlice(text, 0, head);
  append_fill(padded, left);
  padded.AppendSlice(text, head, text.size());
  append_fill(padded, missing - left);
  return padded;
}

// The digits of the number without its sign.
std::string Digits(Integer value, int base, bool upper) {
  std::string digits;
  do {
    const int digit = std::abs(static_cast<int>(value % base));
    digits.push_back(
        static_cast<char>(digit < 10 ? '0' + digit : (upper ? 'A' : 'a') + digit - 10));
    value /= base;
  } while (value != 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string Grouped(std::string_view digits, char separator, size_t group) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % group == 0) {
      out.push_back(separator);
    }
    out.push_back(digits[i]);
  }
  return out;
}

std::string SignText(bool is_negative, char sign) {
  return is_negative ? "-" : sign == '-' ? "" : std::string(1, sign);
}

std::string FloatDigits(double magnitude, const Conversion& how) {
  const int precision = static_cast<int>(std::min(how.precision.value_or(6), kPrecisionMax));
  switch (how.type) {
    case 'e':
      return absl::StrFormat("%.*e", precision, magnitude);
    case 'E':
      return absl::StrFormat("%.*E", precision, magnitude);
    case 'g':
      return absl::StrFormat("%.*g", precision, magnitude);
    case 'G':
      return absl::StrFormat("%.*G", precision, magnitude);
    case '%':
      return absl::StrFormat("%.*f%%", precision, magnitude * 100);
    case 0:
      return how.precision.has_value() ? absl::StrFormat("%.*g", precision, magnitude)
                                       : FloatText(magnitude);
    default:
      return absl::StrFormat("%.*f", precision, magnitude);
  }
}

}  // namespace

absl::StatusOr<TracedText> FormatInteger(Runtime& runtime, Integer value, const Conversion& how) {
  const bool is_negative = value < 0;
  const bool is_hexadecimal = how.type == 'x' || how.type == 'X';
  const int base = is_hexadecimal ? 16 : how.type == 'o' ? 8 : how.type == 'b' ? 2 : 10;
  std::string digits = Digits(value, base, how.type == 'X');
  if (how.precision.has_value()) {
    const size_t wanted = static_cast<size_t>(std::min(*how.precision, kPrecisionMax));
    digits.insert(0, wanted > digits.size() ? wanted - digits.size() : 0, '0');
  }
  if (how.grouping != 0) {
    digits = Grouped(digits, how.grouping, base == 10 ? 3 : 4);
  }
  std::string head = SignText(is_negative, how.sign);
  if (how.alternate && base != 10) {
    AppendJoined(head, "0", std::string(1, how.type));
  }
  return Pad(runtime, TracedText(head + digits, Origin::kTrusted), how, '>', head.size());
}

absl::StatusOr<TracedText> FormatFloat(Runtime& runtime, double value, const Conversion& how) {
  const bool is_negative = std::signbit(value) && !std::isnan(value);
  std::string digits = FloatDigits(std::fabs(value), how);
  if (how.grouping != 0) {
    const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
    digits =
        Grouped(std::string_view(digits).substr(0, whole), how.grouping, 3) + digits.substr(whole);
  }
  const std::string head = SignText(is_negative, how.sign);
  return Pad(runtime, TracedText(head + digits, Origin::kTrusted), how, '>', head.size());
}

absl::StatusOr<TracedText> FormatText(Runtime& runtime, const TracedText& text,
                                      const Conversion& how, char default_align) {
  if (!how.precision.has_value()) {
    return Pad(runtime, text, how, default_align, 0);
  }
  return Pad(runtime, text.Slice(0, OffsetOfCharacter(text.bytes(), *how.precision)), how,
             default_align, 0);
}

}  // namespace trireme::text::jinja
