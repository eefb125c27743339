#include "runtime/text/jinja_unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "runtime/text/jinja_special_case.h"

namespace trireme::text::jinja {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

utf8proc_category_t CategoryOf(char32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

bool IsContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// Lowest code point that may be written in this many bytes; anything below is an overlong form.
constexpr char32_t kLowestOfLength[] = {0, 0, 0x80, 0x800, 0x10000};

template <typename Strips>
StripRange Strip(std::string_view text, bool left, bool right, Strips strips) {
  StripRange range{0, text.size()};
  while (left && range.begin < range.end) {
    const DecodedCharacter character = DecodeAt(text, range.begin);
    if (!strips(character.code_point)) {
      break;
    }
    range.begin += character.bytes;
  }
  while (right && range.end > range.begin) {
    size_t start = range.end - 1;
    while (start > range.begin && range.end - start < 4 &&
           IsContinuation(static_cast<unsigned char>(text[start]))) {
      --start;
    }
    const DecodedCharacter character = DecodeAt(text, start);
    if (start + character.bytes != range.end || !strips(character.code_point)) {
      break;
    }
    range.end = start;
  }
  return range;
}

}  // namespace

DecodedCharacter DecodeAt(std::string_view text, size_t offset) {
  const unsigned char lead = static_cast<unsigned char>(text[offset]);
  if (lead < 0x80) {
    return {lead, 1};
  }
  size_t length = 0;
  if (lead >= 0xC2 && lead < 0xF5) {
    length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  }
  if (length == 0 || length > text.size() - offset) {
    return {kReplacement, 1};
  }
  char32_t code_point = lead & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const unsigned char byte = static_cast<unsigned char>(text[offset + i]);
    if (!IsContinuation(byte)) {
      return {kReplacement, 1};
    }
    code_point = (code_point << 6) | (byte & 0x3FU);
  }
  const bool is_surrogate = code_point >= 0xD800 && code_point < 0xE000;
  if (code_point < kLowestOfLength[length] || code_point > 0x10FFFF || is_surrogate) {
    return {kReplacement, 1};
  }
  return {code_point, length};
}

void AppendUtf8(char32_t code_point, std::string& out) {
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (code_point >> 6)));
    out.push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
  } else if (code_point < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (code_point >> 12)));
    out.push_back(static_cast<char>(0x80 | ((code_point >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | (code_point >> 18)));
    out.push_back(static_cast<char>(0x80 | ((code_point >> 12) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | ((code_point >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
  }
}

bool IsValidUtf8(std::string_view text) {
  for (size_t offset = 0; offset < text.size();) {
    const DecodedCharacter character = DecodeAt(text, offset);
    if (character.bytes == 1 && character.code_point == kReplacement) {
      return false;
    }
    offset += character.bytes;
  }
  return true;
}

int64_t CountCharacters(std::string_view text) {
  int64_t characters = 0;
  for (size_t offset = 0; offset < text.size(); offset += DecodeAt(text, offset).bytes) {
    ++characters;
  }
  return characters;
}

size_t OffsetOfCharacter(std::string_view text, int64_t index) {
  size_t offset = 0;
  for (int64_t i = 0; i < index && offset < text.size(); ++i) {
    offset += DecodeAt(text, offset).bytes;
  }
  return offset;
}

bool IsSpace(char32_t c) {
  if (c < 0x80) {
    return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  }
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsPrintable(char32_t code_point) {
  if (code_point < 0x7F) {
    return code_point >= 0x20;
  }
  switch (CategoryOf(code_point)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

bool IsAlphabetic(char32_t code_point) {
  const utf8proc_category_t category = CategoryOf(code_point);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool IsDecimalDigit(char32_t code_point) { return CategoryOf(code_point) == UTF8PROC_CATEGORY_ND; }

bool IsDigit(char32_t c) {
  return c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || IsDecimalDigit(c);
}

bool IsNumeric(char32_t code_point) {
  const utf8proc_category_t category = CategoryOf(code_point);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool IsUpper(char32_t code_point) {
  return utf8proc_isupper(static_cast<utf8proc_int32_t>(code_point)) != 0;
}

bool IsLower(char32_t code_point) {
  return utf8proc_islower(static_cast<utf8proc_int32_t>(code_point)) != 0;
}

bool IsTitle(char32_t code_point) { return CategoryOf(code_point) == UTF8PROC_CATEGORY_LT; }

void AppendInCase(char32_t code_point, LetterCase letter_case, std::string& out) {
  if (code_point < 0x80) {
    const bool is_letter = (code_point | 0x20U) >= 'a' && (code_point | 0x20U) <= 'z';
    const bool is_lower = letter_case == LetterCase::kLower || letter_case == LetterCase::kFolded;
    const char32_t bit = is_lower ? 0x20 : 0;
    out.push_back(static_cast<char>(is_letter ? (code_point & ~char32_t{0x20}) | bit : code_point));
    return;
  }
  const utf8proc_int32_t character = static_cast<utf8proc_int32_t>(code_point);
  if (letter_case == LetterCase::kLower) {
    if (code_point == 0x0130) {  // capital I with dot keeps its dot as a combining one
      out.append("i\u0307");
    } else {
      AppendUtf8(static_cast<char32_t>(utf8proc_tolower(character)), out);
    }
    return;
  }
  if (letter_case == LetterCase::kFolded) {
    constexpr int kFoldedMax = 8;
    utf8proc_int32_t folded[kFoldedMax];
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(character, folded, kFoldedMax, UTF8PROC_CASEFOLD, nullptr);
    for (utf8proc_ssize_t i = 0; i < count && i < kFoldedMax; ++i) {
      AppendUtf8(static_cast<char32_t>(folded[i]), out);
    }
    return;
  }
  const auto special = std::lower_bound(
      kSpecialCases.begin(), kSpecialCases.end(), code_point,
      [](const SpecialCase& entry, char32_t wanted) { return entry.code_point < wanted; });
  if (special != kSpecialCases.end() && special->code_point == code_point) {
    for (const char32_t c : letter_case == LetterCase::kUpper ? special->upper : special->title) {
      if (c != 0) {
        AppendUtf8(c, out);
      }
    }
    return;
  }
  AppendUtf8(static_cast<char32_t>(letter_case == LetterCase::kUpper ? utf8proc_toupper(character)
                                                                     : utf8proc_totitle(character)),
             out);
}

StripRange StripSpace(std::string_view text, bool left, bool right) {
  return Strip(text, left, right, IsSpace);
}

StripRange StripCharacters(std::string_view text, std::string_view characters, bool left,
                           bool right) {
  std::u32string set;
  for (size_t offset = 0; offset < characters.size();) {
    const DecodedCharacter character = DecodeAt(characters, offset);
    set.push_back(character.code_point);
    offset += character.bytes;
  }
  std::sort(set.begin(), set.end());
  return Strip(text, left, right,
               [&set](char32_t c) { return std::binary_search(set.begin(), set.end(), c); });
}

}  // namespace trireme::text::jinja
