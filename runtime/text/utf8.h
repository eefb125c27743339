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

// Appends `code_point` (at most U+10FFFF, no surrogate) as 1 to 4 bytes.
void AppendUtf8(char32_t code_point, std::string* text);

// The same text with one U+FFFD for each maximal invalid subpart, a cut end included.
std::string ReplaceInvalidSubparts(absl::string_view text);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_UTF8_H_
