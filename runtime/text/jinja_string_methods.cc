#include "runtime/text/jinja_string_methods.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_format.h"
#include "runtime/text/jinja_print.h"
#include "runtime/text/jinja_string_search.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

using Result = absl::StatusOr<Value>;

// Calls append(code_point, out) for each character; what it appends has the character's origin.
template <typename AppendCharacter>
TracedText MapCharacters(const TracedText& text, AppendCharacter append) {
  TracedText mapped;
  for (const TracedText::Run& run : text.Runs()) {
    std::string out;
    for (size_t offset = run.begin; offset < run.end;) {
      const DecodedCharacter character = DecodeAt(text.bytes(), offset);
      append(character.code_point, out);
      offset += character.bytes;
    }
    mapped.Append(out, run.origin);
  }
  return mapped;
}

bool IsCased(char32_t c) { return IsUpper(c) || IsLower(c) || IsTitle(c); }

Result Same(Runtime& runtime, const Value& self, TracedText text) {
  RETURN_IF_ERROR(runtime.SpendBytes(self.text().footprint()));
  return runtime.String(std::move(text), self.string().flavor);
}

// --- case ---

Result Upper(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("upper", arguments, {}).status());
  RETURN_IF_ERROR(runtime.SpendCharacters(self.text().size()));
  return Same(runtime, self, ChangeCase(self.text(), LetterCase::kUpper));
}

Result Lower(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("lower", arguments, {}).status());
  RETURN_IF_ERROR(runtime.SpendCharacters(self.text().size()));
  return Same(runtime, self, ChangeCase(self.text(), LetterCase::kLower));
}

Result CaseFold(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("casefold", arguments, {}).status());
  RETURN_IF_ERROR(runtime.SpendCharacters(self.text().size()));
  return Same(runtime, self, ChangeCase(self.text(), LetterCase::kFolded));
}

Result CapitalizeMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("capitalize", arguments, {}).status());
  RETURN_IF_ERROR(runtime.SpendCharacters(self.text().size()));
  return Same(runtime, self, Capitalize(self.text()));
}

Result Title(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("title", arguments, {}).status());
  RETURN_IF_ERROR(runtime.SpendCharacters(self.text().size()));
  bool after_letter = false;
  return Same(runtime, self,
              MapCharacters(self.text(), [&after_letter](char32_t c, std::string& out) {
                AppendInCase(c, after_letter ? LetterCase::kLower : LetterCase::kTitle, out);
                after_letter = IsCased(c);
              }));
}

Result SwapCase(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("swapcase", arguments, {}).status());
  RETURN_IF_ERROR(runtime.SpendCharacters(self.text().size()));
  return Same(runtime, self, MapCharacters(self.text(), [](char32_t c, std::string& out) {
                AppendInCase(c, IsUpper(c) ? LetterCase::kLower : LetterCase::kUpper, out);
              }));
}

// --- strip, pad, cut ---

Result StripWith(Runtime& runtime, const Value& self, const Arguments& arguments, bool left,
                 bool right, std::string_view name) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments(name, arguments, {"chars"}));
  RETURN_IF_ERROR(runtime.SpendBytes(self.text().footprint()));
  StripRange range{};
  if (bound[0] == nullptr || bound[0]->Is(Kind::kNone)) {
    range = StripSpace(self.bytes(), left, right);
  } else {
    ASSIGN_OR_RETURN(const std::string_view characters, RequireString(name, bound[0]));
    range = StripCharacters(self.bytes(), characters, left, right);
  }
  return runtime.String(self.text().Slice(range.begin, range.end), self.string().flavor);
}

Result Strip(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return StripWith(runtime, self, arguments, /*left=*/true, /*right=*/true, "strip");
}

Result LeftStrip(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return StripWith(runtime, self, arguments, /*left=*/true, /*right=*/false, "lstrip");
}

Result RightStrip(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return StripWith(runtime, self, arguments, /*left=*/false, /*right=*/true, "rstrip");
}

Result RemovePrefix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("removeprefix", arguments, {"prefix"}));
  ASSIGN_OR_RETURN(const std::string_view prefix, RequireString("removeprefix", bound[0]));
  const bool has = self.bytes().substr(0, prefix.size()) == prefix;
  return Same(runtime, self, self.text().Slice(has ? prefix.size() : 0, self.text().size()));
}

Result RemoveSuffix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("removesuffix", arguments, {"suffix"}));
  ASSIGN_OR_RETURN(const std::string_view suffix, RequireString("removesuffix", bound[0]));
  const size_t size = self.text().size();
  const bool has = size >= suffix.size() && self.bytes().substr(size - suffix.size()) == suffix;
  return Same(runtime, self, self.text().Slice(0, has ? size - suffix.size() : size));
}

Result Justify(Runtime& runtime, const Value& self, const Arguments& arguments,
               std::string_view name, bool left) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments(name, arguments, {"width", "fillchar"}));
  ASSIGN_OR_RETURN(const Integer width, IntegerOr(name, bound[0], 0));
  ASSIGN_OR_RETURN(const std::string_view fill,
                   bound[1] == nullptr ? std::string_view(" ") : RequireString(name, bound[1]));
  const Integer missing = width - CountCharacters(self.bytes());
  if (missing <= 0) {
    return self;
  }
  RETURN_IF_ERROR(runtime.SpendProduct(missing, fill.size()));
  TracedText padding;
  for (Integer i = 0; i < missing; ++i) {
    padding.Append(fill, Origin::kTrusted);
  }
  TracedText out;
  out.Append(left ? self.text() : padding);
  out.Append(left ? padding : self.text());
  return Same(runtime, self, std::move(out));
}

Result LeftJustify(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Justify(runtime, self, arguments, "ljust", /*left=*/true);
}

Result RightJustify(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Justify(runtime, self, arguments, "rjust", /*left=*/false);
}

Result CenterMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("center", arguments, {"width"}));
  ASSIGN_OR_RETURN(const Integer width, IntegerOr("center", bound[0], 0));
  ASSIGN_OR_RETURN(TracedText text, Center(runtime, self.text(), width));
  return Same(runtime, self, std::move(text));
}

Result ZeroFill(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("zfill", arguments, {"width"}));
  ASSIGN_OR_RETURN(const Integer width, IntegerOr("zfill", bound[0], 0));
  const Integer missing = width - CountCharacters(self.bytes());
  RETURN_IF_ERROR(runtime.SpendProduct(missing, 1));
  const bool has_sign = !self.text().empty() && (self.bytes()[0] == '-' || self.bytes()[0] == '+');
  TracedText out;
  out.AppendSlice(self.text(), 0, has_sign ? 1 : 0);
  if (missing > 0) {
    out.Append(std::string(static_cast<size_t>(missing), '0'), Origin::kTrusted);
  }
  out.AppendSlice(self.text(), has_sign ? 1 : 0, self.text().size());
  return Same(runtime, self, std::move(out));
}

Result ExpandTabs(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("expandtabs", arguments, {"tabsize"}));
  ASSIGN_OR_RETURN(const Integer tab_size, IntegerOr("expandtabs", bound[0], 8));
  const Integer tabs = std::count(self.bytes().begin(), self.bytes().end(), '\t');
  const Integer width = std::clamp<Integer>(tab_size, 0, Integer{1} << 40);
  RETURN_IF_ERROR(runtime.SpendProduct(tabs, static_cast<size_t>(width)));
  Integer column = 0;
  return Same(runtime, self,
              MapCharacters(self.text(), [&column, width](char32_t c, std::string& out) {
                if (c == '\t') {
                  const Integer spaces = width == 0 ? 0 : width - column % width;
                  out.append(static_cast<size_t>(spaces), ' ');
                  column += spaces;
                  return;
                }
                AppendUtf8(c, out);
                column = c == '\n' || c == '\r' ? 0 : column + 1;
              }));
}

// --- formats ---

Result Format(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return FormatBraces(runtime, self, arguments);
}

Result Encode(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("encode", arguments, {"encoding", "errors"}).status());
  return runtime.String(self.text(), StringFlavor::kBytes);
}

// --- questions ---

template <bool (*IsMember)(char32_t)>
Result All(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("a test of characters", arguments, {}).status());
  RETURN_IF_ERROR(runtime.SpendCharacters(self.text().size()));
  for (size_t offset = 0; offset < self.text().size();) {
    const DecodedCharacter character = DecodeAt(self.bytes(), offset);
    if (!IsMember(character.code_point)) {
      return Value::Boolean(false);
    }
    offset += character.bytes;
  }
  return Value::Boolean(!self.text().empty());
}

bool IsAlphanumeric(char32_t c) { return IsAlphabetic(c) || IsNumeric(c); }
bool IsAscii(char32_t c) { return c < 0x80; }

Result IsIdentifier(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("isidentifier", arguments, {}).status());
  RETURN_IF_ERROR(runtime.SpendCharacters(self.text().size()));
  for (size_t offset = 0; offset < self.text().size();) {
    const DecodedCharacter character = DecodeAt(self.bytes(), offset);
    const char32_t c = character.code_point;
    const bool is_start = c == '_' || IsAlphabetic(c);
    if (!is_start && (offset == 0 || !IsNumeric(c))) {
      return Value::Boolean(false);
    }
    offset += character.bytes;
  }
  return Value::Boolean(!self.text().empty());
}

Result IsAsciiMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (self.text().empty()) {
    return Value::Boolean(true);
  }
  return All<IsAscii>(runtime, self, arguments);
}

Result IsPrintableMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (self.text().empty()) {
    return Value::Boolean(true);
  }
  return All<IsPrintable>(runtime, self, arguments);
}

// At least one cased character, and every cased one is of the case.
template <bool (*IsOfCase)(char32_t)>
Result AllCased(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("a test of case", arguments, {}).status());
  RETURN_IF_ERROR(runtime.SpendCharacters(self.text().size()));
  bool has_cased = false;
  for (size_t offset = 0; offset < self.text().size();) {
    const DecodedCharacter character = DecodeAt(self.bytes(), offset);
    if (IsCased(character.code_point)) {
      if (!IsOfCase(character.code_point)) {
        return Value::Boolean(false);
      }
      has_cased = true;
    }
    offset += character.bytes;
  }
  return Value::Boolean(has_cased);
}

Result IsTitleMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("istitle", arguments, {}).status());
  RETURN_IF_ERROR(runtime.SpendCharacters(self.text().size()));
  bool has_cased = false;
  bool after_cased = false;
  for (size_t offset = 0; offset < self.text().size();) {
    const DecodedCharacter character = DecodeAt(self.bytes(), offset);
    const char32_t c = character.code_point;
    const bool starts_word = IsUpper(c) || IsTitle(c);
    if ((starts_word && after_cased) || (IsLower(c) && !after_cased)) {
      return Value::Boolean(false);
    }
    after_cased = IsCased(c);
    has_cased = has_cased || after_cased;
    offset += character.bytes;
  }
  return Value::Boolean(has_cased);
}

constexpr MethodEntry kStringMethods[] = {
    {"capitalize", CapitalizeMethod},
    {"casefold", CaseFold},
    {"center", CenterMethod},
    {"encode", Encode},
    {"expandtabs", ExpandTabs},
    {"format", Format},
    {"isalnum", All<IsAlphanumeric>},
    {"isalpha", All<IsAlphabetic>},
    {"isascii", IsAsciiMethod},
    {"isdecimal", All<IsDecimalDigit>},
    {"isdigit", All<IsDigit>},
    {"isidentifier", IsIdentifier},
    {"islower", AllCased<IsLower>},
    {"isnumeric", All<IsNumeric>},
    {"isprintable", IsPrintableMethod},
    {"isspace", All<IsSpace>},
    {"istitle", IsTitleMethod},
    {"isupper", AllCased<IsUpper>},
    {"ljust", LeftJustify},
    {"lower", Lower},
    {"lstrip", LeftStrip},
    {"removeprefix", RemovePrefix},
    {"removesuffix", RemoveSuffix},
    {"rjust", RightJustify},
    {"rstrip", RightStrip},
    {"strip", Strip},
    {"swapcase", SwapCase},
    {"title", Title},
    {"upper", Upper},
    {"zfill", ZeroFill},
};

}  // namespace

const MethodEntry* FindStringMethod(std::string_view name) {
  for (const absl::Span<const MethodEntry> entries :
       {absl::Span<const MethodEntry>(kStringMethods), StringSearchMethods()}) {
    for (const MethodEntry& entry : entries) {
      if (entry.name == name) {
        return &entry;
      }
    }
  }
  return nullptr;
}

TracedText ChangeCase(const TracedText& text, LetterCase letter_case) {
  constexpr char32_t kCapitalSigma = 0x3A3;
  constexpr char32_t kFinalSigma = 0x3C2;
  bool after_letter = false;
  size_t offset = 0;
  return MapCharacters(text, [&, letter_case](char32_t c, std::string& out) {
    offset += DecodeAt(text.bytes(), offset).bytes;
    if (c == kCapitalSigma && letter_case == LetterCase::kLower && after_letter) {
      const bool before_letter =
          offset < text.size() && IsCased(DecodeAt(text.bytes(), offset).code_point);
      AppendUtf8(before_letter ? kFinalSigma + 1 : kFinalSigma, out);
    } else {
      AppendInCase(c, letter_case, out);
    }
    after_letter = IsCased(c);
  });
}

TracedText Capitalize(const TracedText& text) {
  bool is_first = true;
  return MapCharacters(text, [&is_first](char32_t c, std::string& out) {
    AppendInCase(c, is_first ? LetterCase::kTitle : LetterCase::kLower, out);
    is_first = false;
  });
}

absl::StatusOr<TracedText> Center(Runtime& runtime, const TracedText& text, Integer width) {
  const Integer characters = CountCharacters(text.bytes());
  const Integer missing = width - characters;
  if (missing <= 0) {
    return text;
  }
  RETURN_IF_ERROR(runtime.SpendProduct(missing, 1));
  // Where the spaces cannot be shared equally, Python gives the left side one more if the width is
  // odd.
  const size_t left = static_cast<size_t>(missing / 2 + (missing & width & 1));
  TracedText out;
  out.Append(std::string(left, ' '), Origin::kTrusted);
  out.Append(text);
  out.Append(std::string(static_cast<size_t>(missing) - left, ' '), Origin::kTrusted);
  return out;
}

}  // namespace trireme::text::jinja
