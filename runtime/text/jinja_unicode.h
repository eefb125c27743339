// What Python's str knows about characters, for the template interpreter: decoding, white space,
// case, categories. Case and categories come from utf8proc; white space is Python's str.isspace.
// Not for tokenizing: the tokenizer has its own classes.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_UNICODE_H_
#define TRIREME_RUNTIME_TEXT_JINJA_UNICODE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace trireme::text::jinja {

struct DecodedCharacter {
  char32_t code_point;
  size_t bytes;  // at least 1
};

// The character at `offset`, which must be below text.size(). A byte that is not valid UTF-8 counts
// as one character, U+FFFD.
DecodedCharacter DecodeAt(std::string_view text, size_t offset);
void AppendUtf8(char32_t code_point, std::string& out);
// True if every byte belongs to a valid UTF-8 sequence (no surrogates, no overlong forms).
bool IsValidUtf8(std::string_view text);
// Number of characters.
int64_t CountCharacters(std::string_view text);
// Byte offset of character `index`, or text.size() when there are fewer.
size_t OffsetOfCharacter(std::string_view text, int64_t index);

bool IsSpace(char32_t code_point);
bool IsPrintable(char32_t code_point);
bool IsAlphabetic(char32_t code_point);
bool IsDecimalDigit(char32_t code_point);
// Decimal digits, superscripts and subscripts.
bool IsDigit(char32_t code_point);
bool IsNumeric(char32_t code_point);
bool IsUpper(char32_t code_point);
bool IsLower(char32_t code_point);
bool IsTitle(char32_t code_point);

// kFolded is for comparing: sharp s becomes ss.
enum class LetterCase : uint8_t { kUpper, kLower, kTitle, kFolded };

// Appends the character in the case wanted, which may be several characters (sharp s becomes SS).
void AppendInCase(char32_t code_point, LetterCase letter_case, std::string& out);

// The offsets [begin, end) that remain after white space, or any character of `characters` when
// given, is stripped.
struct StripRange {
  size_t begin;
  size_t end;
};
StripRange StripSpace(std::string_view text, bool left, bool right);
StripRange StripCharacters(std::string_view text, std::string_view characters, bool left,
                           bool right);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_UNICODE_H_
