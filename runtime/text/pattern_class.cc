#include "runtime/text/pattern_class.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace trireme::text {
namespace {

int HexDigitValue(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

class ClassReader {
 public:
  explicit ClassReader(PatternCursor* cursor) : cursor_(*cursor) {}

  // \s, \p{L}, \x41 and the like: what may stand inside a class too.
  absl::StatusOr<CharacterSet> ParseEscapedSet() {
    cursor_.Skip(1);
    if (cursor_.AtEnd()) {
      return cursor_.Error("the expression ends with a backslash");
    }
    const char kind = cursor_.Peek();
    switch (kind) {
      case 's':
      case 'S':
      case 'd':
      case 'D':
      case 'w':
      case 'W':
      case 'h':
      case 'H':
        cursor_.Skip(1);
        return ClassOfLetter(kind);
      case 'p':
      case 'P':
        return ParseProperty();
      default: {
        ASSIGN_OR_RETURN(const char32_t character, ParseEscapedCharacter());
        return CharacterSet{{character, character}};
      }
    }
  }

  static CharacterSet ClassOfLetter(char kind) {
    CharacterSet set;
    switch (kind | 0x20) {
      case 's':
        set = WhiteSpaceCharacters();
        break;
      case 'd':
        set = DecimalDigitCharacters();
        break;
      case 'w':
        set = WordCharacters();
        break;
      default:
        set = CharacterSet{{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
        break;
    }
    return (kind & 0x20) != 0 ? set : set.Negated();
  }

  absl::StatusOr<CharacterSet> ParseProperty() {
    bool is_negated = cursor_.Peek() == 'P';
    cursor_.Skip(1);
    if (!cursor_.Take("{")) {
      return cursor_.Error("a property without braces");
    }
    const size_t end = cursor_.Rest().find('}');
    if (end == absl::string_view::npos) {
      return cursor_.Error("a property without its closing brace");
    }
    if (cursor_.Take("^")) {
      is_negated = !is_negated;
      return FinishProperty(end - 1, is_negated);
    }
    return FinishProperty(end, is_negated);
  }

  absl::StatusOr<CharacterSet> FinishProperty(size_t name_bytes, bool is_negated) {
    const absl::string_view name = cursor_.Rest().substr(0, name_bytes);
    const std::optional<CharacterSet> set = FindCharacterProperty(name);
    if (!set.has_value()) {
      return cursor_.Error(absl::StrCat("the unknown property \"", name.substr(0, 60), "\""));
    }
    cursor_.Skip(name_bytes + 1);
    return is_negated ? set->Negated() : *set;
  }

  absl::StatusOr<char32_t> ParseHex(size_t digits_min, size_t digits_max) {
    char32_t value = 0;
    size_t digits = 0;
    while (digits < digits_max && !cursor_.AtEnd() && HexDigitValue(cursor_.Peek()) >= 0) {
      value = value * 16 + static_cast<char32_t>(HexDigitValue(cursor_.Peek()));
      cursor_.Skip(1);
      ++digits;
    }
    if (digits < digits_min || value > kLastCodePoint) {
      return cursor_.Error("a malformed code point");
    }
    return value;
  }

  absl::StatusOr<char32_t> ParseEscapedCharacter() {
    static constexpr std::pair<char, char32_t> kLetters[] = {{'t', '\t'}, {'n', '\n'}, {'r', '\r'},
                                                             {'f', '\f'}, {'v', '\v'}, {'a', '\a'},
                                                             {'e', 0x1b}, {'0', 0}};
    for (const auto& [letter, character] : kLetters) {
      if (cursor_.Peek() == letter) {
        cursor_.Skip(1);
        return character;
      }
    }
    if (cursor_.Take("x{")) {
      ASSIGN_OR_RETURN(const char32_t character, ParseHex(1, 6));
      return cursor_.Take("}") ? absl::StatusOr<char32_t>(character)
                               : cursor_.Error("a malformed code point");
    }
    if (cursor_.Take("x")) {
      return ParseHex(1, 2);
    }
    if (cursor_.Take("u")) {
      return ParseHex(4, 4);
    }
    const bool is_word = (cursor_.Peek() >= '0' && cursor_.Peek() <= '9') ||
                         (cursor_.Peek() >= 'a' && cursor_.Peek() <= 'z') ||
                         (cursor_.Peek() >= 'A' && cursor_.Peek() <= 'Z');
    if (is_word) {
      return cursor_.Error(absl::StrFormat("the unknown escape \\%c", cursor_.Peek()));
    }
    return cursor_.TakeCharacter();
  }

  // From "[" to its "]".
  absl::StatusOr<CharacterSet> ParseClass(int depth) {
    if (depth >= kPatternDepthMax) {
      return cursor_.Error(absl::StrFormat("classes are nested deeper than %d", kPatternDepthMax));
    }
    cursor_.Skip(1);
    const bool is_negated = cursor_.Take("^");
    CharacterSet set;
    std::optional<CharacterSet> all_before;  // the sides of "&&" so far
    bool is_first = true;
    while (true) {
      if (cursor_.AtEnd()) {
        return cursor_.Error("a class is not closed");
      }
      if (cursor_.Peek() == ']' && !is_first) {
        cursor_.Skip(1);
        break;
      }
      if (cursor_.Take("&&")) {
        all_before = all_before.has_value() ? all_before->And(set) : set;
        set = CharacterSet();
      } else {
        RETURN_IF_ERROR(ParseClassItem(depth, &set));
      }
      is_first = false;
    }
    set = all_before.has_value() ? all_before->And(set) : set;
    return is_negated ? set.Negated() : set;
  }

  absl::Status ParseClassItem(int depth, CharacterSet* set) {
    if (absl::StartsWith(cursor_.Rest(), "[:")) {
      return ParsePosixClass(set);
    }
    if (cursor_.Peek() == '[') {
      ASSIGN_OR_RETURN(const CharacterSet inner, ParseClass(depth + 1));
      set->Add(inner);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const CharacterSet first, TakeClassMember());
    const bool is_one =
        first.ranges().size() == 1 && first.ranges()[0].first == first.ranges()[0].last;
    const absl::string_view rest = cursor_.Rest();
    const bool is_range =
        is_one && rest.size() > 1 && rest[0] == '-' && rest[1] != ']' && rest[1] != '[';
    if (!is_range) {
      set->Add(first);
      return absl::OkStatus();
    }
    cursor_.Skip(1);
    ASSIGN_OR_RETURN(const CharacterSet last, TakeClassMember());
    const bool is_end = last.ranges().size() == 1 &&
                        last.ranges()[0].first == last.ranges()[0].last &&
                        last.ranges()[0].first >= first.ranges()[0].first;
    if (!is_end) {
      return cursor_.Error("a range without a last character that comes after its first");
    }
    set->Add(first.ranges()[0].first, last.ranges()[0].first);
    return absl::OkStatus();
  }

  absl::StatusOr<CharacterSet> TakeClassMember() {
    if (cursor_.Peek() == '\\') {
      if (cursor_.Rest().size() > 1 && cursor_.Rest()[1] == 'b') {
        cursor_.Skip(2);
        return CharacterSet{{'\b', '\b'}};
      }
      return ParseEscapedSet();
    }
    ASSIGN_OR_RETURN(const char32_t character, cursor_.TakeCharacter());
    return CharacterSet{{character, character}};
  }

  absl::Status ParsePosixClass(CharacterSet* set) {
    const size_t end = cursor_.Rest().find(":]");
    if (end == absl::string_view::npos) {
      return cursor_.Error("a class such as [:alpha:] is not closed");
    }
    absl::string_view name = cursor_.Rest().substr(2, end - 2);
    const bool is_negated = absl::ConsumePrefix(&name, "^");
    static constexpr std::pair<absl::string_view, absl::string_view> kNames[] = {
        {"alpha", "L"},  {"digit", "Nd"}, {"space", "Space"}, {"punct", "P"},
        {"upper", "Lu"}, {"lower", "Ll"}, {"word", "Word"}};
    for (const auto& [posix_name, property] : kNames) {
      if (name == posix_name) {
        const CharacterSet found = *FindCharacterProperty(property);
        set->Add(is_negated ? found.Negated() : found);
        cursor_.Skip(end + 2);
        return absl::OkStatus();
      }
    }
    return cursor_.Error(absl::StrCat("the unknown class [:", name.substr(0, 60), ":]"));
  }

 private:
  PatternCursor& cursor_;
};

}  // namespace

absl::StatusOr<CharacterSet> ReadPatternClass(PatternCursor* cursor) {
  return ClassReader(cursor).ParseClass(0);
}

absl::StatusOr<CharacterSet> ReadPatternEscape(PatternCursor* cursor) {
  return ClassReader(cursor).ParseEscapedSet();
}

}  // namespace trireme::text
