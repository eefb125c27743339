#include "runtime/text/utf8.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"

namespace trireme::text {
namespace {

// What a first byte announces. The range of the second byte keeps out overlong forms, surrogates
// and numbers past U+10FFFF (RFC 3629, section 4).
struct Lead {
  size_t bytes;
  uint8_t second_min;
  uint8_t second_max;
};

Lead LeadOf(uint8_t first) {
  if (first >= 0xc2 && first <= 0xdf) {
    return {2, 0x80, 0xbf};
  }
  if (first >= 0xe0 && first <= 0xef) {
    const uint8_t second_min = first == 0xe0 ? 0xa0 : 0x80;
    const uint8_t second_max = first == 0xed ? 0x9f : 0xbf;
    return {3, second_min, second_max};
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const uint8_t second_min = first == 0xf0 ? 0x90 : 0x80;
    const uint8_t second_max = first == 0xf4 ? 0x8f : 0xbf;
    return {4, second_min, second_max};
  }
  return {1, 0, 0};
}

char LowByte(char32_t value) { return static_cast<char>(static_cast<unsigned char>(value & 0xff)); }

}  // namespace

Utf8Unit FirstUtf8Unit(absl::string_view text) {
  CHECK(!text.empty());
  const uint8_t first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) {
    return {Utf8UnitKind::kCharacter, 1, first};
  }
  const Lead lead = LeadOf(first);
  if (lead.bytes == 1) {
    return {Utf8UnitKind::kInvalid, 1, 0xfffd};
  }
  char32_t code_point = first & (0x7fu >> lead.bytes);
  for (size_t i = 1; i < lead.bytes; ++i) {
    if (i == text.size()) {
      return {Utf8UnitKind::kIncomplete, i, 0xfffd};
    }
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    const uint8_t min = i == 1 ? lead.second_min : 0x80;
    const uint8_t max = i == 1 ? lead.second_max : 0xbf;
    if (byte < min || byte > max) {
      return {Utf8UnitKind::kInvalid, i, 0xfffd};
    }
    code_point = (code_point << 6) | (byte & 0x3fu);
  }
  return {Utf8UnitKind::kCharacter, lead.bytes, code_point};
}

void AppendUtf8(char32_t code_point, std::string* text) {
  CHECK_LE(static_cast<uint32_t>(code_point), 0x10ffffu);
  const char last = LowByte(0x80 | (code_point & 0x3f));
  if (code_point < 0x80) {
    text->push_back(LowByte(code_point));
  } else if (code_point < 0x800) {
    const char bytes[] = {LowByte(0xc0 | (code_point >> 6)), last};
    text->append(bytes, sizeof(bytes));
  } else if (code_point < 0x10000) {
    const char bytes[] = {LowByte(0xe0 | (code_point >> 12)),
                          LowByte(0x80 | ((code_point >> 6) & 0x3f)), last};
    text->append(bytes, sizeof(bytes));
  } else {
    const char bytes[] = {LowByte(0xf0 | (code_point >> 18)),
                          LowByte(0x80 | ((code_point >> 12) & 0x3f)),
                          LowByte(0x80 | ((code_point >> 6) & 0x3f)), last};
    text->append(bytes, sizeof(bytes));
  }
}

std::string ReplaceInvalidSubparts(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Utf8Unit unit = FirstUtf8Unit(text);
    const bool whole = unit.kind == Utf8UnitKind::kCharacter;
    absl::StrAppend(&result, whole ? text.substr(0, unit.bytes) : kReplacementCharacter);
    text.remove_prefix(unit.bytes);
  }
  return result;
}

}  // namespace trireme::text
