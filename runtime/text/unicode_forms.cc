#include "runtime/text/unicode_forms.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "runtime/text/character_set.h"
#include "runtime/text/unicode_classes.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

// Characters with a compatibility decomposition that are newer than the library's tables.
constexpr CodePointRange kNewCompatibility[] = {
    {0x32ff, 0x32ff},   {0xa7f2, 0xa7f4},   {0xab69, 0xab69},
    {0x10781, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba},
    {0x1e030, 0x1e06d}, {0x1f16c, 0x1f16c}, {0x1fbf0, 0x1fbf9}};
// The same for a canonical one.
constexpr CodePointRange kNewCanonical[] = {{0x11938, 0x11938}};

// Pairs of cases that are newer than the installed library's tables: upper case from `first` to
// `last`, each with its lower case `distance` away.
struct CaseRange {
  char32_t first;
  char32_t last;
  int32_t distance;
};
constexpr CaseRange kNewCases[] = {{0x1c89, 0x1c89, 1},    {0xa7cb, 0xa7cb, 0x264 - 0xa7cb},
                                   {0xa7cc, 0xa7cc, 1},    {0xa7ce, 0xa7ce, 1},
                                   {0xa7d2, 0xa7d2, 1},    {0xa7d4, 0xa7d4, 1},
                                   {0xa7da, 0xa7da, 1},    {0xa7dc, 0xa7dc, 0x19b - 0xa7dc},
                                   {0x10d50, 0x10d65, 32}, {0x16ea0, 0x16eb8, 27}};

template <size_t kCount>
bool IsIn(char32_t code_point, const CodePointRange (&ranges)[kCount]) {
  return std::any_of(std::begin(ranges), std::end(ranges), [code_point](CodePointRange range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

bool IsAscii(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

int CombiningClass(char32_t code_point) {
  return code_point < 0x300
             ? 0
             : utf8proc_get_property(static_cast<utf8proc_int32_t>(code_point))->combining_class;
}

// Appends the full decomposition of one character.
void Decompose(char32_t code_point, bool is_compatibility, std::vector<utf8proc_int32_t>* out) {
  const bool stays = code_point < 0x80 || IsIn(code_point, kNewCanonical) ||
                     (is_compatibility && IsIn(code_point, kNewCompatibility));
  if (stays) {
    out->push_back(static_cast<utf8proc_int32_t>(code_point));
    return;
  }
  std::array<utf8proc_int32_t, 32> buffer;  // the longest decomposition has 18 characters
  int last_class = 0;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (is_compatibility ? UTF8PROC_COMPAT : 0));
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), buffer.data(),
                              static_cast<utf8proc_ssize_t>(buffer.size()), options, &last_class);
  if (count <= 0 || count > static_cast<utf8proc_ssize_t>(buffer.size())) {
    out->push_back(static_cast<utf8proc_int32_t>(code_point));
    return;
  }
  out->insert(out->end(), buffer.begin(), buffer.begin() + count);
}

// Sorts each run of combining marks by class; equal ones keep their order.
void Reorder(std::vector<utf8proc_int32_t>* characters) {
  const auto class_of = [](utf8proc_int32_t c) { return CombiningClass(static_cast<char32_t>(c)); };
  auto begin = characters->begin();
  while (begin != characters->end()) {
    if (class_of(*begin) == 0) {
      ++begin;
      continue;
    }
    auto end = begin;
    while (end != characters->end() && class_of(*end) != 0) {
      ++end;
    }
    std::stable_sort(begin, end, [&class_of](utf8proc_int32_t a, utf8proc_int32_t b) {
      return class_of(a) < class_of(b);
    });
    begin = end;
  }
}

// The library takes U+11A7, the code point before the first trailing consonant of Hangul, for one
// that composes; it composes with nothing, so stretches between are composed one by one.
void Compose(std::vector<utf8proc_int32_t>* characters) {
  constexpr utf8proc_int32_t kBeforeTrailingConsonants = 0x11a7;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  size_t written = 0;
  for (size_t begin = 0; begin < characters->size();) {
    const auto stop = std::find(characters->begin() + static_cast<std::ptrdiff_t>(begin),
                                characters->end(), kBeforeTrailingConsonants);
    const auto end = static_cast<size_t>(stop - characters->begin());
    const utf8proc_ssize_t count = utf8proc_normalize_utf32(
        characters->data() + begin, static_cast<utf8proc_ssize_t>(end - begin), options);
    for (size_t i = begin; i < begin + static_cast<size_t>(std::max<utf8proc_ssize_t>(count, 0));
         ++i) {
      (*characters)[written++] = (*characters)[i];
    }
    begin = end;
    if (stop != characters->end()) {
      (*characters)[written++] = kBeforeTrailingConsonants;
      ++begin;
    }
  }
  characters->resize(written);
}

}  // namespace

std::string ToUnicodeForm(absl::string_view text, UnicodeForm form) {
  if (IsAscii(text)) {
    return std::string(text);
  }
  const bool is_compatibility = form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd;
  const bool composes = form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc;
  std::vector<utf8proc_int32_t> characters;
  characters.reserve(text.size());
  while (!text.empty()) {
    const Utf8Unit unit = FirstUtf8Unit(text);
    Decompose(unit.code_point, is_compatibility, &characters);
    text.remove_prefix(unit.bytes);
  }
  Reorder(&characters);
  if (composes) {
    Compose(&characters);
  }
  std::string result;
  for (const utf8proc_int32_t character : characters) {
    AppendUtf8(static_cast<char32_t>(character), &result);
  }
  return result;
}

std::string ToLowerCase(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Utf8Unit unit = FirstUtf8Unit(text);
    auto lower =
        static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(unit.code_point)));
    for (const CaseRange& range : kNewCases) {
      if (unit.code_point >= range.first && unit.code_point <= range.last) {
        lower = static_cast<char32_t>(static_cast<int32_t>(unit.code_point) + range.distance);
      }
    }
    if (unit.code_point == 0x130) {  // I with dot: the one that becomes two characters
      result += "i\xcc\x87";
    } else {
      AppendUtf8(lower, &result);
    }
    text.remove_prefix(unit.bytes);
  }
  return result;
}

std::string WithoutMarks(absl::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Utf8Unit unit = FirstUtf8Unit(text);
    if (unit.code_point < 0x300 || CategoryOf(unit.code_point) != UnicodeCategory::kMark) {
      result.append(text.data(), unit.bytes);
    }
    text.remove_prefix(unit.bytes);
  }
  return result;
}

absl::string_view StripWhiteSpace(absl::string_view text, bool left, bool right) {
  const auto is_space = [](absl::string_view character) {
    return CategoryOf(FirstUtf8Unit(character).code_point) == UnicodeCategory::kWhiteSpace;
  };
  while (left && !text.empty() && is_space(text)) {
    text.remove_prefix(FirstUtf8Unit(text).bytes);
  }
  while (right && !text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) {
      --begin;
    }
    if (!is_space(text.substr(begin))) {
      break;
    }
    text.remove_suffix(text.size() - begin);
  }
  return text;
}

}  // namespace trireme::text
