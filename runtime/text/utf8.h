// UTF-8 for tokenizers: reading one character at a time from bytes that may be invalid or end in
// the middle of a character. Plain validity checks are in runtime/base/utf8.h.
//
// Words: a "unit" is either one whole character or one maximal invalid subpart (Unicode 3.9,
// "U+FFFD substitution of maximal subparts": the longest prefix of a well-formed sequence, at least
// one byte).
#ifndef TRIREME_RUNTIME_TEXT_UTF8_H_
#define TRIREME_RUNTIME_TEXT_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace trireme::text {

inline constexpr absl::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD

enum class Utf8UnitKind : uint8_t {
  kCharacter,   // well-formed
  kInvalid,     // can never become well-formed, whatever follows
  kIncomplete,  // the text ends here, but so far it is the beginning of a well-formed character
};

struct Utf8Unit {
  Utf8UnitKind kind;
  size_t bytes;         // 1 to 4
  char32_t code_point;  // of a kCharacter, else U+FFFD
};

// The unit at the start of `text`, which must not be empty.
Utf8Unit FirstUtf8Unit(absl::string_view text);

// The character at `position` of a text that is valid UTF-8 and goes on there: a FirstUtf8Unit
// that checks nothing.
struct Utf8Character {
  char32_t code_point;
  size_t bytes;  // 1 to 4
};
inline Utf8Character ValidUtf8At(absl::string_view text, size_t position) {
  const auto byte = [text, position](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[position + i]));
  };
  const auto rest = [&byte](size_t i) { return byte(i) & 0x3f; };
  const char32_t first = byte(0);
  if (first < 0x80) {
    return {first, 1};
  }
  if (first < 0xe0) {
    return {(first & 0x1f) << 6 | rest(1), 2};
  }
  if (first < 0xf0) {
    return {(first & 0x0f) << 12 | rest(1) << 6 | rest(2), 3};
  }
  return {(first & 0x07) << 18 | rest(1) << 12 | rest(2) << 6 | rest(3), 4};
}

// Appends `code_point` (at most U+10FFFF, no surrogate) as 1 to 4 bytes.
void AppendUtf8(char32_t code_point, std::string* text);

// The same text with one U+FFFD for each maximal invalid subpart, a cut end included.
std::string ReplaceInvalidSubparts(absl::string_view text);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_UTF8_H_
