#include "runtime/text/character_set.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/text/unicode_classes.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

// Above this a set is a property, whose letters come in all their cases or in one on purpose.
constexpr int64_t kCasedCharactersMax = 4096;

constexpr char32_t kFirstSurrogate = 0xd800;
constexpr char32_t kLastSurrogate = 0xdfff;

// Numbers of Unicode 15 and 16 that are no decimal digits; the others that a library of Unicode 14
// does not know are.
constexpr CodePointRange kNewOtherNumbers = {0x1d2c0, 0x1d2d3};

// Symbols that are alphabetic: circled and squared letters.
constexpr CodePointRange kAlphabeticSymbols[] = {
    {0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
constexpr CodePointRange kJoiners = {0x200c, 0x200d};

constexpr absl::string_view kCategoryNames[] = {
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
static_assert(UTF8PROC_CATEGORY_CO + 1 == std::size(kCategoryNames));

// utf8proc's category, by the name of two letters, where our table has no finer one.
absl::string_view LibraryCategory(char32_t code_point) {
  return kCategoryNames[utf8proc_category(static_cast<utf8proc_int32_t>(code_point))];
}

bool IsDecimalDigit(char32_t code_point) {
  const absl::string_view category = LibraryCategory(code_point);
  return category == "Nd" || (category == "Cn" && (code_point < kNewOtherNumbers.first ||
                                                   code_point > kNewOtherNumbers.last));
}

CharacterSet OfCategories(std::initializer_list<UnicodeCategory> categories) {
  CharacterSet set;
  const absl::Span<const UnicodeRun> runs = UnicodeRuns();
  for (size_t i = 0; i < runs.size(); ++i) {
    if (std::find(categories.begin(), categories.end(), runs[i].category) != categories.end()) {
      set.Add(runs[i].first, i + 1 < runs.size() ? runs[i + 1].first - 1 : kLastCodePoint);
    }
  }
  return set;
}

// The members of `set` for which `has` is true.
template <typename Predicate>
CharacterSet Filter(const CharacterSet& set, Predicate has) {
  CharacterSet result;
  for (const CodePointRange& range : set.ranges()) {
    for (char32_t code_point = range.first; code_point <= range.last; ++code_point) {
      if (has(code_point)) {
        result.Add(code_point, code_point);
      }
    }
  }
  return result;
}

CharacterSet Letters() {
  return OfCategories({UnicodeCategory::kUppercaseLetter, UnicodeCategory::kLowercaseLetter,
                       UnicodeCategory::kTitlecaseLetter, UnicodeCategory::kModifierLetter,
                       UnicodeCategory::kOtherLetter});
}

// The general categories that our own table tells apart.
std::optional<CharacterSet> FindOwnCategory(absl::string_view name) {
  static constexpr std::pair<absl::string_view, UnicodeCategory> kOwn[] = {
      {"Lu", UnicodeCategory::kUppercaseLetter},
      {"Ll", UnicodeCategory::kLowercaseLetter},
      {"Lt", UnicodeCategory::kTitlecaseLetter},
      {"Lm", UnicodeCategory::kModifierLetter},
      {"Lo", UnicodeCategory::kOtherLetter},
      {"N", UnicodeCategory::kNumber},
      {"M", UnicodeCategory::kMark},
      {"P", UnicodeCategory::kPunctuation},
      {"S", UnicodeCategory::kSymbol}};
  if (name == "L") {
    return Letters();
  }
  if (name == "L&" || name == "LC") {
    return OfCategories({UnicodeCategory::kUppercaseLetter, UnicodeCategory::kLowercaseLetter,
                         UnicodeCategory::kTitlecaseLetter});
  }
  for (const auto& [own_name, category] : kOwn) {
    if (name == own_name) {
      return OfCategories({category});
    }
  }
  return std::nullopt;
}

CharacterSet AllCharacters() {
  return CharacterSet{{0, kFirstSurrogate - 1}, {kLastSurrogate + 1, kLastCodePoint}};
}

// Categories of two letters that only the library knows, and the two of one letter made of them.
std::optional<CharacterSet> FindLibraryCategory(absl::string_view name) {
  if (name == "Nd") {
    return DecimalDigitCharacters();
  }
  const bool is_group = name == "Z" || name == "C";
  if (!is_group && std::find(std::begin(kCategoryNames), std::end(kCategoryNames), name) ==
                       std::end(kCategoryNames)) {
    return std::nullopt;
  }
  return Filter(AllCharacters(), [name](char32_t code_point) {
    return absl::StartsWith(LibraryCategory(code_point), name);
  });
}

// Scripts, by running the library's expression over all characters.
std::optional<CharacterSet> FindScript(absl::string_view name) {
  const bool is_word = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
  if (!is_word) {
    return std::nullopt;
  }
  const std::string pattern = absl::StrCat("\\p{", name, "}+");
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* const code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()),
                                         pattern.size(), PCRE2_UTF, &error, &offset, nullptr);
  if (code == nullptr) {
    return std::nullopt;
  }
  (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  // One text of all characters, and the places of their bytes in it.
  std::string all;
  std::vector<std::pair<size_t, char32_t>> jumps = {{0, 0}};  // a run of characters of equal size
  for (char32_t code_point = 0; code_point <= kLastCodePoint; ++code_point) {
    if (code_point == kFirstSurrogate) {
      code_point = kLastSurrogate + 1;
    }
    if (code_point == 0x80 || code_point == 0x800 || code_point == kLastSurrogate + 1 ||
        code_point == 0x10000) {
      jumps.emplace_back(all.size(), code_point);
    }
    AppendUtf8(code_point, &all);
  }
  const auto character_at = [&jumps](size_t byte) {
    const auto after = std::upper_bound(
        jumps.begin(), jumps.end(), byte,
        [](size_t value, const std::pair<size_t, char32_t>& jump) { return value < jump.first; });
    const auto& [begin, first] = *(after - 1);
    const size_t bytes = first < 0x80 ? 1 : first < 0x800 ? 2 : first < 0x10000 ? 3 : 4;
    return static_cast<char32_t>(first + (byte - begin) / bytes);
  };
  pcre2_match_data* const data = pcre2_match_data_create(1, nullptr);
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data);
  CharacterSet set;
  size_t position = 0;
  while (pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(all.data()), all.size(), position,
                     PCRE2_NO_UTF_CHECK, data, nullptr) > 0) {
    position = ends[1];
    set.Add(character_at(ends[0]), character_at(position - 1));
  }
  pcre2_match_data_free(data);
  pcre2_code_free(code);
  return set;
}

}  // namespace

CharacterSet::CharacterSet(std::initializer_list<CodePointRange> ranges) {
  for (const CodePointRange& range : ranges) {
    Add(range.first, range.last);
  }
}

void CharacterSet::Add(char32_t first, char32_t last) {
  if (first > last) {
    return;
  }
  // The first range that touches or lies behind, then all that are swallowed.
  const auto begin = std::lower_bound(
      ranges_.begin(), ranges_.end(), first,
      [](const CodePointRange& range, char32_t value) { return range.last + 1 < value; });
  auto end = begin;
  while (end != ranges_.end() && end->first <= last + 1) {
    first = std::min(first, end->first);
    last = std::max(last, end->last);
    ++end;
  }
  if (begin == end) {
    ranges_.insert(begin, {first, last});
    return;
  }
  *begin = {first, last};
  ranges_.erase(begin + 1, end);
}

void CharacterSet::Add(const CharacterSet& other) {
  for (const CodePointRange& range : other.ranges_) {
    Add(range.first, range.last);
  }
}

CharacterSet CharacterSet::Negated() const {
  CharacterSet result;
  char32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (range.first > next) {
      result.ranges_.push_back({next, range.first - 1});
    }
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) {
    result.ranges_.push_back({next, kLastCodePoint});
  }
  return result;
}

CharacterSet CharacterSet::And(const CharacterSet& other) const {
  CharacterSet outside = Negated();
  outside.Add(other.Negated());
  return outside.Negated();
}

CharacterSet CharacterSet::WithOtherCases() const {
  int64_t characters = 0;
  for (const CodePointRange& range : ranges_) {
    characters += static_cast<int64_t>(range.last) - static_cast<int64_t>(range.first) + 1;
  }
  CharacterSet result = *this;
  if (characters > kCasedCharactersMax) {
    return result;
  }
  for (const CodePointRange& range : ranges_) {
    for (char32_t code_point = range.first; code_point <= range.last; ++code_point) {
      const auto lower =
          static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point)));
      const auto upper =
          static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code_point)));
      result.Add(lower, lower);
      result.Add(upper, upper);
      if (lower == 's' || code_point == 0x17f) {
        result.Add(CharacterSet{{'S', 'S'}, {'s', 's'}, {0x17f, 0x17f}});
      }
      if (lower == 'k' || code_point == 0x212a) {
        result.Add(CharacterSet{{'K', 'K'}, {'k', 'k'}, {0x212a, 0x212a}});
      }
    }
  }
  return result;
}

bool CharacterSet::Contains(char32_t code_point) const {
  const auto after = std::upper_bound(
      ranges_.begin(), ranges_.end(), code_point,
      [](char32_t value, const CodePointRange& range) { return value < range.first; });
  return after != ranges_.begin() && (after - 1)->last >= code_point;
}

std::optional<CharacterSet> FindCharacterProperty(absl::string_view name) {
  static constexpr std::pair<absl::string_view, absl::string_view> kLongNames[] = {
      {"Letter", "L"},    {"Mark", "M"},   {"Number", "N"}, {"Punctuation", "P"},
      {"Punct", "P"},     {"Symbol", "S"}, {"Alpha", "L"},  {"Digit", "Nd"},
      {"Separator", "Z"}, {"Other", "C"},  {"Upper", "Lu"}, {"Lower", "Ll"}};
  if (name == "Space" || name == "White_Space") {
    return WhiteSpaceCharacters();
  }
  if (name == "Word") {
    return WordCharacters();
  }
  for (const auto& [long_name, short_name] : kLongNames) {
    name = name == long_name ? short_name : name;
  }
  for (const auto find : {FindOwnCategory, FindLibraryCategory, FindScript}) {
    if (std::optional<CharacterSet> set = find(name); set.has_value()) {
      return set;
    }
  }
  return std::nullopt;
}

const CharacterSet& WhiteSpaceCharacters() {
  static const auto* const set = new CharacterSet(OfCategories({UnicodeCategory::kWhiteSpace}));
  return *set;
}

const CharacterSet& DecimalDigitCharacters() {
  static const auto* const set =
      new CharacterSet(Filter(OfCategories({UnicodeCategory::kNumber}), IsDecimalDigit));
  return *set;
}

const CharacterSet& WordCharacters() {
  static const auto* const set = [] {
    auto* const all = new CharacterSet(Letters());
    all->Add(OfCategories({UnicodeCategory::kMark}));
    all->Add(DecimalDigitCharacters());
    all->Add(Filter(OfCategories({UnicodeCategory::kNumber}),
                    [](char32_t code_point) { return LibraryCategory(code_point) == "Nl"; }));
    all->Add(Filter(OfCategories({UnicodeCategory::kPunctuation}),
                    [](char32_t code_point) { return LibraryCategory(code_point) == "Pc"; }));
    for (const CodePointRange& range : kAlphabeticSymbols) {
      all->Add(range.first, range.last);
    }
    all->Add(kJoiners.first, kJoiners.last);
    return all;
  }();
  return *set;
}

}  // namespace trireme::text
