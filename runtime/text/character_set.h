// Sets of characters, as regular expressions name them: ranges of code points and Unicode
// properties. The letters, numbers, marks, punctuation, symbols and white space are those of
// Unicode 16.0 (unicode_classes.h); finer properties and scripts come from the installed libraries,
// which may be older.
#ifndef TRIREME_RUNTIME_TEXT_CHARACTER_SET_H_
#define TRIREME_RUNTIME_TEXT_CHARACTER_SET_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace trireme::text {

inline constexpr char32_t kLastCodePoint = 0x10ffff;

struct CodePointRange {
  char32_t first;
  char32_t last;  // inclusive
};

// A value; surrogates may be in it and match nothing.
class CharacterSet {
 public:
  CharacterSet() = default;
  CharacterSet(std::initializer_list<CodePointRange> ranges);

  // Adds first to last; nothing when first > last.
  void Add(char32_t first, char32_t last);
  void Add(const CharacterSet& other);

  CharacterSet Negated() const;
  CharacterSet And(const CharacterSet& other) const;

  // With the other cases of each letter, so that a caseless expression is one without flags. As the
  // published engines do, "s" brings U+017F and "k" U+212A. Sets of over 4096 characters, which are
  // properties, stay as they are.
  CharacterSet WithOtherCases() const;

  bool Contains(char32_t code_point) const;

  // Ascending, neither overlapping nor touching.
  absl::Span<const CodePointRange> ranges() const { return ranges_; }

 private:
  std::vector<CodePointRange> ranges_;
};

// The set of \p{name}: general categories of one or two letters ("L", "Lu", "L&"), long names of
// those ("Letter"), and scripts ("Han"). Absent for an unknown name.
std::optional<CharacterSet> FindCharacterProperty(absl::string_view name);

const CharacterSet& WhiteSpaceCharacters();    // \s: White_Space
const CharacterSet& DecimalDigitCharacters();  // \d: Nd
// \w: alphabetic characters, marks, decimal digits, connectors such as "_", and joiners.
const CharacterSet& WordCharacters();

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_CHARACTER_SET_H_
