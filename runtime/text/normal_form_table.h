// What each code point does when a text is brought into a Unicode normalization form: the few bits
// that tell at once, of most texts, that they are in the form already. See unicode_forms.h for the
// forms and whose tables they follow.
#ifndef TRIREME_RUNTIME_TEXT_NORMAL_FORM_TABLE_H_
#define TRIREME_RUNTIME_TEXT_NORMAL_FORM_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trireme::text {

enum class UnicodeForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// Canonical_Combining_Class in the low byte, above it what `kChanges...` and `kJoins...` name.
using NormalFormBits = uint16_t;
inline constexpr NormalFormBits kCombiningClassBits = 0xff;
inline constexpr NormalFormBits kChangesInNfc = 0x100;  // the character alone is not in that form
inline constexpr NormalFormBits kChangesInNfd = 0x200;
inline constexpr NormalFormBits kChangesInNfkc = 0x400;
inline constexpr NormalFormBits kChangesInNfkd = 0x800;
inline constexpr NormalFormBits kJoinsPrevious = 0x1000;  // may compose with what is before it

// Those with which a character may not be in the form. A text is in it when no character has any
// of them and combining classes do not fall, zeros left out (UAX #15, section 9).
constexpr NormalFormBits DoubtfulBits(UnicodeForm form) {
  switch (form) {
    case UnicodeForm::kNfc:
      return kChangesInNfc | kJoinsPrevious;
    case UnicodeForm::kNfd:
      return kChangesInNfd;
    case UnicodeForm::kNfkc:
      return kChangesInNfkc | kJoinsPrevious;
    case UnicodeForm::kNfkd:
      return kChangesInNfkd;
  }
  return 0;
}

// Appends the full decomposition of one character, canonical or with compatibility ones.
void AppendDecomposition(char32_t code_point, bool is_compatibility, std::vector<int32_t>* out);

// Immutable; any number of threads may ask. About 60 KiB.
class NormalFormTable {
 public:
  // Made at the first call, in about 20 ms.
  static const NormalFormTable& Get();

  // `code_point` is at most U+10FFFF.
  NormalFormBits Of(char32_t code_point) const {
    return pages_[size_t{page_index_[code_point / kPageCharacters]} * kPageCharacters +
                  code_point % kPageCharacters];
  }

 private:
  static constexpr size_t kPageCharacters = 256;

  NormalFormTable();

  std::array<uint16_t, 0x110000 / kPageCharacters> page_index_ = {};
  std::vector<NormalFormBits> pages_;  // equal ones once
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_NORMAL_FORM_TABLE_H_
