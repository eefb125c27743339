// The alphabet of byte-level vocabularies: each of the 256 bytes is written as one printable
// character, so that tokens and merges can be stored as text. 0x20 is U+0120, 0x0A is U+010A, 'a'
// is itself.
#ifndef TRIREME_RUNTIME_TEXT_BYTE_LEVEL_H_
#define TRIREME_RUNTIME_TEXT_BYTE_LEVEL_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace trireme::text {

// The character that stands for `byte`.
char32_t CharacterOfByte(uint8_t byte);

// The byte that `character` stands for, or -1 when it is not in the alphabet.
int ByteOfCharacter(char32_t character);

struct ByteLevelText {
  std::string bytes;        // a character outside the alphabet gives its own UTF-8
  bool in_alphabet = true;  // every character was in the alphabet
};

// The bytes that the token text `text` (valid UTF-8) stands for.
ByteLevelText DecodeByteLevel(absl::string_view text);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_BYTE_LEVEL_H_
