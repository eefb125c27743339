// The general categories of Unicode 16.0, as far as pre-tokenizer patterns ask for them. Libraries
// are behind (PCRE2 10.42 knows 14.0, with 9272 letters fewer), and a letter that one engine does
// not know changes the tokens of a text, so the table is ours.
#ifndef TRIREME_RUNTIME_TEXT_UNICODE_CLASSES_H_
#define TRIREME_RUNTIME_TEXT_UNICODE_CLASSES_H_

#include <cstdint>

#include "absl/types/span.h"

namespace trireme::text {

// Every code point is in exactly one. White space is the property White_Space, not a general
// category; it shares no code point with the others named here.
enum class UnicodeCategory : uint8_t {
  kOther,
  kUppercaseLetter,  // \p{Lu}
  kLowercaseLetter,  // \p{Ll}
  kTitlecaseLetter,  // \p{Lt}
  kModifierLetter,   // \p{Lm}
  kOtherLetter,      // \p{Lo}
  kNumber,           // \p{N}
  kMark,             // \p{M}
  kPunctuation,      // \p{P}
  kSymbol,           // \p{S}
  kWhiteSpace,       // \s
};

inline constexpr int kUnicodeCategories = 11;

// Code points from `first` up to the next run's first, or up to U+10FFFF.
struct UnicodeRun {
  char32_t first;
  UnicodeCategory category;
};

// All of Unicode as ascending runs; the first one begins at 0, neighbours differ in category.
absl::Span<const UnicodeRun> UnicodeRuns();

// By binary search: for building tables, not for running text.
UnicodeCategory CategoryOf(char32_t code_point);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_UNICODE_CLASSES_H_
