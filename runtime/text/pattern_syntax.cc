#include "runtime/text/pattern_syntax.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"
#include "runtime/text/pattern_class.h"
#include "runtime/text/pattern_cursor.h"

namespace trireme::text {
namespace {

constexpr int kRepeatsMax = 1000;  // {n,m}: more would be a program of its own
constexpr size_t kSetsMax = 1000;

// Groups that open as they are.
constexpr absl::string_view kGroupOpenings[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};

class PatternParser {
 public:
  explicit PatternParser(absl::string_view pattern) : cursor_(pattern) {}

  absl::StatusOr<PatternSyntax> Parse() {
    while (!cursor_.AtEnd()) {
      RETURN_IF_ERROR(ParseOne());
    }
    if (!groups_.empty()) {
      return cursor_.Error("a group is not closed");
    }
    return std::move(syntax_);
  }

 private:
  struct Group {
    size_t first_item;
    bool is_caseless_outside;
  };

  void PushOperators(absl::string_view text) { syntax_.items.push_back({std::string(text), -1}); }
  absl::Status PushSet(const CharacterSet& set) {
    if (syntax_.sets.size() >= kSetsMax) {
      return cursor_.Error(absl::StrFormat("over %d characters and classes", kSetsMax));
    }
    atom_ = syntax_.items.size();
    syntax_.items.push_back({"", static_cast<int>(syntax_.sets.size())});
    syntax_.sets.push_back(is_caseless_ ? set.WithOtherCases() : set);
    return absl::OkStatus();
  }
  // An assertion that is made of looks at word characters, or at newlines.
  absl::Status PushLooks(const CharacterSet& set, std::initializer_list<absl::string_view> parts) {
    for (const absl::string_view part : parts) {
      if (part == "SET") {
        RETURN_IF_ERROR(PushSet(set));
      } else {
        PushOperators(part);
      }
    }
    atom_.reset();
    return absl::OkStatus();
  }

  absl::Status ParseOne() {
    switch (cursor_.Peek()) {
      case '(':
        return OpenGroup();
      case ')':
        return CloseGroup();
      case '|':
        cursor_.Skip(1);
        atom_.reset();
        PushOperators("|");
        return absl::OkStatus();
      case '?':
      case '*':
      case '+':
      case '{':
        return ParseQuantifier();
      case '[': {
        ASSIGN_OR_RETURN(const CharacterSet set, ReadPatternClass(&cursor_));
        return PushSet(set);
      }
      case '.':
        cursor_.Skip(1);
        return PushSet(CharacterSet{{'\n', '\n'}}.Negated());
      case '^':
        cursor_.Skip(1);
        return PushLooks(CharacterSet{{'\n', '\n'}}, {"(?:\\A|(?<=", "SET", "))"});
      case '$':
        cursor_.Skip(1);
        return PushLooks(CharacterSet{{'\n', '\n'}}, {"(?:\\z|(?=", "SET", "))"});
      case '\\':
        return ParseEscape();
      default: {
        ASSIGN_OR_RETURN(const char32_t character, cursor_.TakeCharacter());
        return PushSet(CharacterSet{{character, character}});
      }
    }
  }

  absl::Status OpenGroup() {
    if (groups_.size() >= kPatternDepthMax) {
      return cursor_.Error(absl::StrFormat("groups are nested deeper than %d", kPatternDepthMax));
    }
    Group group = {syntax_.items.size(), is_caseless_};
    atom_.reset();
    if (cursor_.Take("(?i)")) {  // up to the end of the group around it
      is_caseless_ = true;
      return absl::OkStatus();
    }
    if (cursor_.Take("(?-i)")) {
      is_caseless_ = false;
      return absl::OkStatus();
    }
    std::string opening = "(?:";
    if (cursor_.Take("(?i:")) {
      is_caseless_ = true;
    } else if (cursor_.Take("(?-i:")) {
      is_caseless_ = false;
    } else if (absl::StartsWith(cursor_.Rest(), "(?")) {
      opening.clear();
      for (const absl::string_view known : kGroupOpenings) {
        if (opening.empty() && cursor_.Take(known)) {
          opening = std::string(known);
        }
      }
      if (opening.empty()) {
        return cursor_.Error("an unknown kind of group");
      }
    } else {
      cursor_.Skip(1);
    }
    PushOperators(opening);
    groups_.push_back(group);
    return absl::OkStatus();
  }

  absl::Status CloseGroup() {
    if (groups_.empty()) {
      return cursor_.Error("a closing parenthesis without its opening one");
    }
    cursor_.Skip(1);
    PushOperators(")");
    atom_ = groups_.back().first_item;
    is_caseless_ = groups_.back().is_caseless_outside;
    groups_.pop_back();
    return absl::OkStatus();
  }

  // "{2,3}" as a quantifier; absent when the brace is a literal, as in "{a".
  absl::StatusOr<std::optional<std::string>> TakeCounts() {
    const size_t end = cursor_.Rest().find('}');
    const absl::string_view inner =
        end == absl::string_view::npos ? "" : cursor_.Rest().substr(1, end - 1);
    int numbers[2] = {-1, -1};
    int commas = 0;
    for (const char c : inner) {
      if (c == ',' && commas == 0) {
        ++commas;
      } else if (c >= '0' && c <= '9') {
        int& number = numbers[commas];
        number = number < 0 ? c - '0' : number * 10 + (c - '0');
        if (number > kRepeatsMax) {
          return cursor_.Error(absl::StrFormat("a count above %d", kRepeatsMax));
        }
      } else {
        return std::optional<std::string>();
      }
    }
    if (numbers[0] < 0 && numbers[1] < 0) {
      return std::optional<std::string>();
    }
    if (commas > 0 && numbers[1] >= 0 && numbers[0] > numbers[1]) {
      return cursor_.Error("counts in the wrong order");
    }
    cursor_.Skip(end + 1);
    if (commas == 0) {
      return std::optional<std::string>(absl::StrCat("{", numbers[0], "}"));
    }
    return std::optional<std::string>(
        absl::StrCat("{", std::max(numbers[0], 0), ",",
                     numbers[1] < 0 ? std::string() : absl::StrCat(numbers[1]), "}"));
  }

  absl::Status ParseQuantifier() {
    std::string quantifier(1, cursor_.Peek());
    const bool has_counts = cursor_.Peek() == '{';
    if (has_counts) {
      ASSIGN_OR_RETURN(const std::optional<std::string> counts, TakeCounts());
      if (!counts.has_value()) {
        cursor_.Skip(1);
        return PushSet(CharacterSet{{'{', '{'}});
      }
      quantifier = *counts;
    } else {
      cursor_.Skip(1);
    }
    if (!atom_.has_value()) {
      return cursor_.Error("a quantifier without anything to repeat");
    }
    if (cursor_.Take("?")) {
      quantifier += "?";
    } else if (!has_counts && cursor_.Take("+")) {
      quantifier += "+";
    }
    PushOperators(quantifier);
    // A further one repeats what is repeated already.
    if (!cursor_.AtEnd() &&
        (cursor_.Peek() == '?' || cursor_.Peek() == '*' || cursor_.Peek() == '+')) {
      syntax_.items.insert(syntax_.items.begin() + static_cast<std::ptrdiff_t>(*atom_),
                           PatternItem{"(?:", -1});
      PushOperators(")");
    } else {
      atom_.reset();
    }
    return absl::OkStatus();
  }

  absl::Status ParseEscape() {
    const absl::string_view rest = cursor_.Rest();
    const char kind = rest.size() > 1 ? rest[1] : '\0';
    switch (kind) {
      case 'A':
      case 'z':
        cursor_.Skip(2);
        PushOperators(rest.substr(0, 2));
        atom_.reset();
        return absl::OkStatus();
      case 'Z':
        cursor_.Skip(2);
        return PushLooks(CharacterSet{{'\n', '\n'}}, {"(?=(?:", "SET", ")?\\z)"});
      case 'b':
        cursor_.Skip(2);
        return PushLooks(WordCharacters(),
                         {"(?:(?<=", "SET", ")(?!", "SET", ")|(?<!", "SET", ")(?=", "SET", "))"});
      case 'B':
        cursor_.Skip(2);
        return PushLooks(WordCharacters(),
                         {"(?:(?<=", "SET", ")(?=", "SET", ")|(?<!", "SET", ")(?!", "SET", "))"});
      default: {
        ASSIGN_OR_RETURN(const CharacterSet set, ReadPatternEscape(&cursor_));
        return PushSet(set);
      }
    }
  }

  PatternCursor cursor_;
  bool is_caseless_ = false;
  std::vector<Group> groups_;
  std::optional<size_t> atom_;  // item where what a quantifier would repeat begins
  PatternSyntax syntax_;
};

}  // namespace

absl::StatusOr<PatternSyntax> ParsePattern(absl::string_view pattern) {
  if (pattern.size() > kPatternBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a regular expression of %d bytes; at most %d are supported",
                        pattern.size(), kPatternBytesMax));
  }
  if (!IsValidUtf8(pattern)) {
    return absl::InvalidArgumentError("a regular expression that is not UTF-8");
  }
  return PatternParser(pattern).Parse();
}

}  // namespace trireme::text
