#include "runtime/text/byte_level.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

// Bytes that are not printable on their own take the characters from U+0100 on, in ascending order.
constexpr char32_t kFirstSubstitute = 0x100;
constexpr int kSubstitutes = 68;

constexpr bool IsItsOwnCharacter(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Alphabet {
  std::array<char32_t, 256> characters = {};
  std::array<int16_t, kFirstSubstitute + kSubstitutes> bytes = {};
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet;
  for (auto& byte : alphabet.bytes) {
    byte = -1;
  }
  char32_t substitute = kFirstSubstitute;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t character = IsItsOwnCharacter(byte) ? static_cast<char32_t>(byte) : substitute++;
    alphabet.characters[static_cast<size_t>(byte)] = character;
    alphabet.bytes[character] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();
static_assert(kAlphabet.characters[0xad] == kFirstSubstitute + kSubstitutes - 1);

}  // namespace

char32_t CharacterOfByte(uint8_t byte) { return kAlphabet.characters[byte]; }

int ByteOfCharacter(char32_t character) {
  return character < kAlphabet.bytes.size() ? kAlphabet.bytes[character] : -1;
}

ByteLevelText DecodeByteLevel(absl::string_view text) {
  ByteLevelText result;
  while (!text.empty()) {
    const Utf8Unit unit = FirstUtf8Unit(text);
    const int byte = unit.kind == Utf8UnitKind::kCharacter ? ByteOfCharacter(unit.code_point) : -1;
    if (byte >= 0) {
      result.bytes.push_back(static_cast<char>(byte));
    } else {
      result.in_alphabet = false;
      absl::StrAppend(&result.bytes, text.substr(0, unit.bytes));
    }
    text.remove_prefix(unit.bytes);
  }
  return result;
}

}  // namespace trireme::text
