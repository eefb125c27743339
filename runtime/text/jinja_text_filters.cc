#include "runtime/text/jinja_text_filters.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_elements.h"
#include "runtime/text/jinja_format.h"
#include "runtime/text/jinja_print.h"
#include "runtime/text/jinja_string_methods.h"
#include "runtime/text/jinja_string_search.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

using Result = absl::StatusOr<Value>;

// Makes text of the value and works on it; the result is markup when the value was.
template <TracedText (*change)(const TracedText&)>
Result Change(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("this filter", arguments, {}).status());
  ASSIGN_OR_RETURN(const Value text, ToString(runtime, value));
  RETURN_IF_ERROR(runtime.SpendCharacters(text.text().size()));
  return runtime.String(change(text.text()), text.string().flavor);
}

TracedText UpperText(const TracedText& text) { return ChangeCase(text, LetterCase::kUpper); }
TracedText LowerText(const TracedText& text) { return ChangeCase(text, LetterCase::kLower); }

Result Title(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("title", arguments, {}).status());
  ASSIGN_OR_RETURN(const TracedText text, ToText(runtime, value));
  RETURN_IF_ERROR(runtime.SpendCharacters(text.size()));
  TracedText out;
  bool starts_word = true;
  for (const TracedText::Run& run : text.Runs()) {
    std::string piece;
    for (size_t offset = run.begin; offset < run.end;) {
      const DecodedCharacter character = DecodeAt(text.bytes(), offset);
      const char32_t c = character.code_point;
      AppendInCase(c, starts_word ? LetterCase::kUpper : LetterCase::kLower, piece);
      starts_word = IsSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
      offset += character.bytes;
    }
    out.Append(piece, run.origin);
  }
  return runtime.String(std::move(out));
}

Result Trim(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("trim", arguments, {"chars"}));
  ASSIGN_OR_RETURN(const Value text, ToString(runtime, value));
  Arguments characters;
  if (bound[0] != nullptr) {
    characters.positional.push_back(*bound[0]);
  }
  return FindStringMethod("strip")->function(runtime, text, characters);
}

Result ReplaceFilter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("replace", arguments, {"old", "new", "count"}));
  if (bound[0] == nullptr || bound[1] == nullptr) {
    return TemplateError("replace needs the text to replace and its replacement");
  }
  ASSIGN_OR_RETURN(const TracedText text, ToText(runtime, value));
  ASSIGN_OR_RETURN(const TracedText old_text, ToText(runtime, *bound[0]));
  ASSIGN_OR_RETURN(const TracedText new_text, ToText(runtime, *bound[1]));
  ASSIGN_OR_RETURN(const Integer count, IntegerOr("replace", bound[2], -1));
  ASSIGN_OR_RETURN(TracedText replaced, Replace(runtime, text, old_text.bytes(), new_text, count));
  return runtime.String(std::move(replaced));
}

Result Indent(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BindArguments("indent", arguments, {"width", "first", "blank"}));
  RETURN_IF_ERROR(RequireDefined(value));
  if (!value.IsString()) {
    return TemplateError("indent needs a string, not ", TypeName(value));
  }
  TracedText indention;
  if (bound[0] != nullptr && bound[0]->IsString()) {
    indention = bound[0]->text();
  } else {
    ASSIGN_OR_RETURN(const Integer width, IntegerOr("indent", bound[0], 4));
    RETURN_IF_ERROR(runtime.SpendProduct(width, 1));
    indention = TracedText(std::string(static_cast<size_t>(std::max<Integer>(width, 0)), ' '),
                           Origin::kTrusted);
  }
  const bool indents_first = IsTrueArgument(bound[1]);
  const bool indents_blank = IsTrueArgument(bound[2]);
  TracedText ended = value.text();
  ended.Append("\n", Origin::kTrusted);
  ASSIGN_OR_RETURN(const std::vector<TracedText> lines,
                   SplitLines(runtime, ended, /*keep_ends=*/false));
  TracedText out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool indents = i == 0 ? indents_first : indents_blank || !lines[i].empty();
    RETURN_IF_ERROR(runtime.SpendGrowth(out, indention.footprint() + lines[i].size()));
    if (i > 0) {
      out.Append("\n", Origin::kTrusted);
    }
    if (indents) {
      out.Append(indention);
    }
    out.Append(lines[i]);
  }
  return runtime.String(std::move(out), value.string().flavor);
}

Result Escape(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("escape", arguments, {}).status());
  if (value.IsMarkup()) {
    return value;
  }
  ASSIGN_OR_RETURN(const TracedText text, ToText(runtime, value));
  ASSIGN_OR_RETURN(TracedText escaped, EscapeHtml(runtime, text));
  return runtime.String(std::move(escaped), StringFlavor::kMarkup);
}

Result ForceEscape(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("forceescape", arguments, {}).status());
  ASSIGN_OR_RETURN(const TracedText text, ToText(runtime, value));
  ASSIGN_OR_RETURN(TracedText escaped, EscapeHtml(runtime, text));
  return runtime.String(std::move(escaped), StringFlavor::kMarkup);
}

Result Safe(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("safe", arguments, {}).status());
  ASSIGN_OR_RETURN(TracedText text, ToText(runtime, value));
  return runtime.String(std::move(text), StringFlavor::kMarkup);
}

Result StringFilter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("string", arguments, {}).status());
  return ToString(runtime, value);
}

Result CenterFilter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("center", arguments, {"width"}));
  ASSIGN_OR_RETURN(const Integer width, IntegerOr("center", bound[0], 80));
  ASSIGN_OR_RETURN(const Value text, ToString(runtime, value));
  ASSIGN_OR_RETURN(TracedText centered, Center(runtime, text.text(), width));
  return runtime.String(std::move(centered), text.string().flavor);
}

Result FormatFilter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Value format, ToString(runtime, value));
  if (!arguments.keywords.empty()) {
    if (!arguments.positional.empty()) {
      return TemplateError("format takes values with names or without, not both");
    }
    ASSIGN_OR_RETURN(Map * named, runtime.NewMap());
    for (const auto& [name, argument] : arguments.keywords) {
      named->Set(name, argument);
    }
    return FormatPercent(runtime, format, Value::Of(named));
  }
  ASSIGN_OR_RETURN(const Value values, runtime.List(arguments.positional, SequenceFlavor::kTuple));
  return FormatPercent(runtime, format, values);
}

Result WordCount(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("wordcount", arguments, {}).status());
  ASSIGN_OR_RETURN(const TracedText text, ToText(runtime, value));
  Integer words = 0;
  bool in_word = false;
  for (size_t offset = 0; offset < text.size();) {
    const DecodedCharacter character = DecodeAt(text.bytes(), offset);
    const char32_t c = character.code_point;
    const bool is_word = c == '_' || IsAlphabetic(c) || IsNumeric(c);
    words += is_word && !in_word ? 1 : 0;
    in_word = is_word;
    offset += character.bytes;
  }
  return Value::Of(words);
}

Result Truncate(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BindArguments("truncate", arguments, {"length", "killwords", "end", "leeway"}));
  ASSIGN_OR_RETURN(const Integer length, IntegerOr("truncate", bound[0], 255));
  ASSIGN_OR_RETURN(const Integer leeway, IntegerOr("truncate", bound[3], 5));
  ASSIGN_OR_RETURN(const Value text, ToString(runtime, value));
  TracedText end("...", Origin::kTrusted);
  if (bound[2] != nullptr) {
    ASSIGN_OR_RETURN(end, ToText(runtime, *bound[2]));
  }
  const Integer end_characters = CountCharacters(end.bytes());
  if (length < end_characters || leeway < 0) {
    return TemplateError("truncate: the length must be at least that of the end, ",
                         IntegerText(end_characters), ", and the leeway not negative");
  }
  if (CountCharacters(text.bytes()) <= length + leeway) {
    return text;
  }
  const size_t kept =
      OffsetOfCharacter(text.bytes(), static_cast<int64_t>(length - end_characters));
  size_t cut = kept;
  if (!IsTrueArgument(bound[1])) {
    const size_t space = text.bytes().substr(0, kept).rfind(' ');
    cut = space == std::string_view::npos ? kept : space;
  }
  TracedText out = text.text().Slice(0, cut);
  out.Append(end);
  return runtime.String(std::move(out), text.string().flavor);
}

// In a query string a space is a plus and a slash is quoted.
void AppendUrlQuoted(std::string_view bytes, bool is_query, std::string& out) {
  for (const char c : bytes) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || (c == '/' && !is_query) ||
                          std::string_view("_.-~").find(c) != std::string_view::npos;
    if (is_plain) {
      out.push_back(c);
    } else if (c == ' ' && is_query) {
      out.push_back('+');
    } else {
      constexpr std::string_view kDigits = "0123456789ABCDEF";
      const unsigned char byte = static_cast<unsigned char>(c);
      out.push_back('%');
      out.push_back(kDigits[byte >> 4]);
      out.push_back(kDigits[byte & 0xF]);
    }
  }
}

Result UrlEncode(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("urlencode", arguments, {}).status());
  std::string out;
  if (const Map* map = value.AsMap(); map != nullptr) {
    for (const auto& [key, item] : map->entries) {
      ASSIGN_OR_RETURN(const TracedText name, ToText(runtime, key));
      ASSIGN_OR_RETURN(const TracedText text, ToText(runtime, item));
      RETURN_IF_ERROR(runtime.SpendCharacters(name.size() + text.size()));
      out.append(out.empty() ? "" : "&");
      AppendUrlQuoted(name.bytes(), /*is_query=*/true, out);
      out.push_back('=');
      AppendUrlQuoted(text.bytes(), /*is_query=*/true, out);
    }
    return runtime.String(std::move(out), Origin::kUntrusted);
  }
  ASSIGN_OR_RETURN(const TracedText text, ToText(runtime, value));
  RETURN_IF_ERROR(runtime.SpendCharacters(text.size()));
  AppendUrlQuoted(text.bytes(), /*is_query=*/false, out);
  return runtime.String(std::move(out), text.WeakestOrigin());
}

// The named and numbered entities that escaping makes.
TracedText UnescapeHtml(const TracedText& text) {
  constexpr std::pair<std::string_view, std::string_view> kEntities[] = {
      {"&amp;", "&"},  {"&lt;", "<"},    {"&gt;", ">"},
      {"&#34;", "\""}, {"&quot;", "\""}, {"&#39;", "'"}};
  TracedText out;
  size_t copied = 0;
  for (size_t at = text.bytes().find('&'); at != std::string_view::npos;
       at = text.bytes().find('&', at + 1)) {
    for (const auto& [entity, character] : kEntities) {
      if (text.bytes().substr(at, entity.size()) == entity) {
        out.AppendSlice(text, copied, at);
        out.Append(character, Origin::kUntrusted);
        copied = at + entity.size();
      }
    }
  }
  out.AppendSlice(text, copied, text.size());
  return out;
}

// Takes HTML comments and tags out and makes every run of white space one space.
Result StripTags(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("striptags", arguments, {}).status());
  ASSIGN_OR_RETURN(const TracedText text, ToText(runtime, value));
  const std::string_view bytes = text.bytes();
  TracedText without;
  size_t copied = 0;
  for (size_t open = bytes.find('<'); open != std::string_view::npos;
       open = bytes.find('<', open)) {
    const bool is_comment = bytes.substr(open, 4) == "<!--";
    const size_t close = is_comment ? bytes.find("-->", open) : bytes.find('>', open);
    if (close == std::string_view::npos) {
      break;
    }
    without.AppendSlice(text, copied, open);
    copied = close + (is_comment ? 3 : 1);
    open = copied;
  }
  without.AppendSlice(text, copied, bytes.size());
  TracedText out;
  ASSIGN_OR_RETURN(const std::vector<TracedText> words, SplitWords(runtime, without));
  for (const TracedText& word : words) {
    if (!out.empty()) {
      out.Append(" ", Origin::kTrusted);
    }
    out.Append(word);
  }
  return runtime.String(UnescapeHtml(out));
}

Result FileSizeFormat(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("filesizeformat", arguments, {"binary"}));
  ASSIGN_OR_RETURN(const Value number, ApplyFilter(runtime, "float", value, {{Value::None()}, {}}));
  if (!number.Is(Kind::kFloat)) {
    return TemplateError("filesizeformat needs a number, not ", TypeName(value));
  }
  const double bytes = number.AsDouble();
  const bool is_binary = IsTrueArgument(bound[0]);
  const double base = is_binary ? 1024 : 1000;
  if (bytes == 1.0) {
    return runtime.String("1 Byte", Origin::kTrusted);
  }
  if (bytes < base) {
    return runtime.String(absl::StrFormat("%d Bytes", static_cast<int>(bytes)), Origin::kTrusted);
  }
  constexpr char kPrefixes[] = "kMGTPEZY";
  double unit = base;
  size_t prefix = 0;
  while (prefix + 1 < 8 && bytes >= unit * base) {
    unit *= base;
    ++prefix;
  }
  const char letter = is_binary && prefix == 0 ? 'K' : kPrefixes[prefix];
  return runtime.String(absl::StrFormat("%.1f %c%sB", bytes / unit, letter, is_binary ? "i" : ""),
                        Origin::kTrusted);
}

constexpr FilterEntry kTextFilters[] = {
    {"capitalize", Change<Capitalize>},
    {"center", CenterFilter},
    {"e", Escape},
    {"escape", Escape},
    {"filesizeformat", FileSizeFormat},
    {"forceescape", ForceEscape},
    {"format", FormatFilter},
    {"indent", Indent},
    {"lower", Change<LowerText>},
    {"replace", ReplaceFilter},
    {"safe", Safe},
    {"string", StringFilter},
    {"striptags", StripTags},
    {"title", Title},
    {"trim", Trim},
    {"truncate", Truncate},
    {"upper", Change<UpperText>},
    {"urlencode", UrlEncode},
    {"wordcount", WordCount},
};

}  // namespace

absl::Span<const FilterEntry> TextFilters() { return kTextFilters; }

}  // namespace trireme::text::jinja
