// Checks of UTF-8 for text from files and peers. Decoding for tokenizers is in runtime/text.
#ifndef TRIREME_RUNTIME_BASE_UTF8_H_
#define TRIREME_RUNTIME_BASE_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace trireme {

// The bytes of the well-formed character at the start of `text` (1 to 4), or 0 when there is none:
// empty, cut, overlong, a surrogate, or past U+10FFFF (RFC 3629).
size_t Utf8CharacterBytes(absl::string_view text);

bool IsValidUtf8(absl::string_view text);

// The same text with U+FFFD in place of each byte that belongs to no well-formed character.
std::string ReplaceInvalidUtf8(absl::string_view text);

}  // namespace trireme

#endif  // TRIREME_RUNTIME_BASE_UTF8_H_
