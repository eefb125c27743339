#include "runtime/base/utf8.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace trireme {
namespace {

uint8_t ByteAt(absl::string_view text, size_t index) { return static_cast<uint8_t>(text[index]); }

// The bytes that a first byte announces, and the range of the second byte that keeps out overlong
// forms, surrogates and numbers past U+10FFFF (RFC 3629, section 4).
struct Lead {
  size_t bytes;
  uint8_t second_min;
  uint8_t second_max;
};

Lead LeadOf(uint8_t first) {
  if (first < 0x80) {
    return {1, 0, 0};
  }
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
  return {0, 0, 0};
}

// How many bytes at the start of `text` are below 0x80, eight at a time where so many are.
size_t AsciiBytes(absl::string_view text) {
  size_t count = 0;
  for (uint64_t eight = 0; count + sizeof(eight) <= text.size(); count += sizeof(eight)) {
    std::memcpy(&eight, text.data() + count, sizeof(eight));
    if ((eight & 0x8080808080808080u) != 0) {
      break;
    }
  }
  while (count < text.size() && ByteAt(text, count) < 0x80) {
    ++count;
  }
  return count;
}

}  // namespace

size_t Utf8CharacterBytes(absl::string_view text) {
  if (text.empty()) {
    return 0;
  }
  const Lead lead = LeadOf(ByteAt(text, 0));
  if (lead.bytes <= 1) {
    return lead.bytes;
  }
  if (text.size() < lead.bytes) {
    return 0;
  }
  if (ByteAt(text, 1) < lead.second_min || ByteAt(text, 1) > lead.second_max) {
    return 0;
  }
  for (size_t i = 2; i < lead.bytes; ++i) {
    if ((ByteAt(text, i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  return lead.bytes;
}

bool IsValidUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t ascii = AsciiBytes(text);
    if (ascii > 0) {
      text.remove_prefix(ascii);
      continue;
    }
    const size_t bytes = Utf8CharacterBytes(text);
    if (bytes == 0) {
      return false;
    }
    text.remove_prefix(bytes);
  }
  return true;
}

std::string ReplaceInvalidUtf8(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = Utf8CharacterBytes(text);
    absl::StrAppend(&result,
                    bytes == 0 ? absl::string_view("\xef\xbf\xbd") : text.substr(0, bytes));
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return result;
}

}  // namespace trireme
