#include "runtime/text/unicode_forms.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/text/unicode_classes.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

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

bool IsAscii(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// One text's way into a form.
class FormWriter {
 public:
  FormWriter(absl::string_view text, UnicodeForm form)
      : table_(NormalFormTable::Get()),
        text_(text),
        doubtful_(DoubtfulBits(form)),
        is_compatibility_(form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd),
        composes_(form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc) {}

  std::string Write();

 private:
  bool IsBoundary(NormalFormBits bits) const {
    return (bits & (doubtful_ | kCombiningClassBits)) == 0;
  }
  size_t NextBoundary(size_t position) const;
  void WriteStretch(absl::string_view stretch);
  int ClassOf(int32_t character) const {
    return table_.Of(static_cast<char32_t>(character)) & kCombiningClassBits;
  }
  void Reorder();

  const NormalFormTable& table_;
  const absl::string_view text_;
  const NormalFormBits doubtful_;
  const bool is_compatibility_;
  const bool composes_;
  std::vector<int32_t> characters_;  // of the stretch
  std::vector<int32_t> sorted_;
  std::string result_;
};

// Characters that stay and neither join nor are joined across their beginning are boundaries: the
// stretches between two of them are normalized one by one, and copied where nothing in them is
// doubtful.
std::string FormWriter::Write() {
  size_t written = 0;
  size_t boundary = 0;
  int last_class = 0;
  for (size_t i = 0; i < text_.size();) {
    const Utf8Character character = ValidUtf8At(text_, i);
    const NormalFormBits bits = table_.Of(character.code_point);
    const int combining_class = bits & kCombiningClassBits;
    if (IsBoundary(bits)) {
      boundary = i;
      last_class = 0;
      i += character.bytes;
    } else if ((bits & doubtful_) == 0 && combining_class >= last_class) {
      last_class = combining_class;
      i += character.bytes;
    } else {
      absl::StrAppend(&result_, text_.substr(written, boundary - written));
      i = NextBoundary(i + character.bytes);
      WriteStretch(text_.substr(boundary, i - boundary));
      written = i;
      boundary = i;
      last_class = 0;
    }
  }
  absl::StrAppend(&result_, text_.substr(written));
  return std::move(result_);
}

size_t FormWriter::NextBoundary(size_t position) const {
  while (position < text_.size()) {
    const Utf8Character character = ValidUtf8At(text_, position);
    if (IsBoundary(table_.Of(character.code_point))) {
      break;
    }
    position += character.bytes;
  }
  return position;
}

void FormWriter::WriteStretch(absl::string_view stretch) {
  const NormalFormBits decomposes = is_compatibility_ ? kChangesInNfkd : kChangesInNfd;
  characters_.clear();
  for (size_t i = 0; i < stretch.size();) {
    const Utf8Character character = ValidUtf8At(stretch, i);
    if ((table_.Of(character.code_point) & decomposes) == 0) {
      characters_.push_back(static_cast<int32_t>(character.code_point));
    } else {
      AppendDecomposition(character.code_point, is_compatibility_, &characters_);
    }
    i += character.bytes;
  }
  Reorder();
  if (composes_) {
    // The library takes U+11A7, the code point before the first trailing consonant of Hangul, for
    // one that composes. It is a boundary, so there is nothing before it here.
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    const utf8proc_ssize_t count = utf8proc_normalize_utf32(
        characters_.data(), static_cast<utf8proc_ssize_t>(characters_.size()), options);
    characters_.resize(static_cast<size_t>(std::max<utf8proc_ssize_t>(count, 0)));
  }
  for (const int32_t character : characters_) {
    AppendUtf8(static_cast<char32_t>(character), &result_);
  }
}

// Sorts each run of combining marks by class, by counting; equal ones keep their order.
void FormWriter::Reorder() {
  for (size_t begin = 0; begin < characters_.size(); ++begin) {
    int last_class = 0;
    bool is_sorted = true;
    size_t end = begin;
    for (int each; end < characters_.size() && (each = ClassOf(characters_[end])) != 0; ++end) {
      is_sorted = is_sorted && each >= last_class;
      last_class = each;
    }
    if (!is_sorted) {
      std::array<uint32_t, kCombiningClassBits + 2> starts = {};  // [class], in the sorted run
      for (size_t i = begin; i < end; ++i) {
        ++starts[static_cast<size_t>(ClassOf(characters_[i])) + 1];
      }
      std::partial_sum(starts.begin(), starts.end(), starts.begin());
      sorted_.resize(end - begin);
      for (size_t i = begin; i < end; ++i) {
        sorted_[starts[static_cast<size_t>(ClassOf(characters_[i]))]++] = characters_[i];
      }
      std::copy(sorted_.begin(), sorted_.end(),
                characters_.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    begin = end;
  }
}

}  // namespace

std::string ToUnicodeForm(absl::string_view text, UnicodeForm form) {
  return IsAscii(text) ? std::string(text) : FormWriter(text, form).Write();
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
