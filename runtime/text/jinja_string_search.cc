#include "runtime/text/jinja_string_search.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_print.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

using Result = absl::StatusOr<Value>;

Result Same(Runtime& runtime, const Value& self, TracedText text) {
  RETURN_IF_ERROR(runtime.SpendBytes(self.text().footprint()));
  return runtime.String(std::move(text), self.string().flavor);
}

Result ListOf(Runtime& runtime, const Value& self, std::vector<TracedText> texts,
              SequenceFlavor flavor = SequenceFlavor::kList) {
  RETURN_IF_ERROR(runtime.SpendBytes(self.text().footprint()));
  std::vector<Value> items;
  items.reserve(texts.size());
  for (TracedText& text : texts) {
    ASSIGN_OR_RETURN(Value item, runtime.String(std::move(text), self.string().flavor));
    items.push_back(std::move(item));
  }
  return runtime.List(std::move(items), flavor);
}

// --- search ---

// The bytes of self between the optional character positions `start` and `end`.
struct Part {
  size_t begin;
  size_t end;
  bool is_valid;  // false when start lies behind the end
};

absl::StatusOr<Part> PartOf(Runtime& runtime, const Value& self, const Value* start,
                            const Value* end, std::string_view method) {
  RETURN_IF_ERROR(runtime.SpendBytes(self.text().footprint()));
  const std::string_view bytes = self.bytes();
  if (start == nullptr && end == nullptr) {
    return Part{0, bytes.size(), true};
  }
  const Integer length = CountCharacters(bytes);
  ASSIGN_OR_RETURN(Integer first, IntegerOr(method, start, 0));
  ASSIGN_OR_RETURN(Integer last, IntegerOr(method, end, length));
  first = first < 0 ? std::max<Integer>(first + length, 0) : first;
  last = last < 0 ? std::max<Integer>(last + length, 0) : std::min(last, length);
  if (first > last) {
    return Part{0, 0, false};
  }
  return Part{OffsetOfCharacter(bytes, static_cast<int64_t>(first)),
              OffsetOfCharacter(bytes, static_cast<int64_t>(last)), true};
}

// The character position of the argument in self, or -1.
absl::StatusOr<Integer> Search(Runtime& runtime, const Value& self, const Arguments& arguments,
                               std::string_view name, bool from_right) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments(name, arguments, {"sub", "start", "end"}));
  ASSIGN_OR_RETURN(const std::string_view wanted, RequireString(name, bound[0]));
  ASSIGN_OR_RETURN(const Part part, PartOf(runtime, self, bound[1], bound[2], name));
  if (!part.is_valid) {
    return Integer{-1};
  }
  const std::string_view bytes = self.bytes().substr(part.begin, part.end - part.begin);
  const size_t found = from_right ? bytes.rfind(wanted) : bytes.find(wanted);
  if (found == std::string_view::npos) {
    return Integer{-1};
  }
  return Integer{CountCharacters(self.bytes().substr(0, part.begin + found))};
}

Result Find(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Integer found, Search(runtime, self, arguments, "find", false));
  return Value::Of(found);
}

Result RightFind(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Integer found, Search(runtime, self, arguments, "rfind", true));
  return Value::Of(found);
}

Result Index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Integer found, Search(runtime, self, arguments, "index", false));
  return found < 0 ? Result(TemplateError("index(): substring not found")) : Value::Of(found);
}

Result RightIndex(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Integer found, Search(runtime, self, arguments, "rindex", true));
  return found < 0 ? Result(TemplateError("rindex(): substring not found")) : Value::Of(found);
}

Result Count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("count", arguments, {"sub", "start", "end"}));
  ASSIGN_OR_RETURN(const std::string_view wanted, RequireString("count", bound[0]));
  ASSIGN_OR_RETURN(const Part part, PartOf(runtime, self, bound[1], bound[2], "count"));
  if (!part.is_valid) {
    return Value::Of(Integer{0});
  }
  const std::string_view bytes = self.bytes().substr(part.begin, part.end - part.begin);
  if (wanted.empty()) {
    return Value::Of(Integer{CountCharacters(bytes) + 1});
  }
  Integer times = 0;
  for (size_t at = bytes.find(wanted); at != std::string_view::npos;
       at = bytes.find(wanted, at + wanted.size())) {
    ++times;
  }
  return Value::Of(times);
}

Result HasAffix(Runtime& runtime, const Value& self, const Arguments& arguments,
                std::string_view name, bool at_start) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments(name, arguments, {"prefix", "start", "end"}));
  ASSIGN_OR_RETURN(const Part part, PartOf(runtime, self, bound[1], bound[2], name));
  const std::string_view bytes = self.bytes().substr(part.begin, part.end - part.begin);
  std::vector<Value> candidates;
  if (bound[0] != nullptr && bound[0]->Is(Kind::kSequence) &&
      bound[0]->AsSequence()->flavor == SequenceFlavor::kTuple) {
    ASSIGN_OR_RETURN(candidates, runtime.Iterate(*bound[0]));
  } else if (bound[0] != nullptr) {
    candidates.push_back(*bound[0]);
  } else {
    return TemplateError(name, "() needs a string");
  }
  bool has = false;
  for (const Value& candidate : candidates) {
    ASSIGN_OR_RETURN(const std::string_view affix, RequireString(name, &candidate));
    const bool fits = part.is_valid && affix.size() <= bytes.size();
    has = has ||
          (fits && bytes.substr(at_start ? 0 : bytes.size() - affix.size(), affix.size()) == affix);
  }
  return Value::Boolean(has);
}

Result StartsWith(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return HasAffix(runtime, self, arguments, "startswith", /*at_start=*/true);
}

Result EndsWith(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return HasAffix(runtime, self, arguments, "endswith", /*at_start=*/false);
}

Result ReplaceMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("replace", arguments, {"old", "new", "count"}));
  ASSIGN_OR_RETURN(const std::string_view old_text, RequireString("replace", bound[0]));
  RETURN_IF_ERROR(RequireString("replace", bound[1]).status());
  ASSIGN_OR_RETURN(const Integer count, IntegerOr("replace", bound[2], -1));
  ASSIGN_OR_RETURN(TracedText text,
                   Replace(runtime, self.text(), old_text, bound[1]->text(), count));
  return Same(runtime, self, std::move(text));
}

// --- split and join ---

struct SplitOptions {
  std::optional<std::string_view> separator;
  Integer splits_max;
};

absl::StatusOr<SplitOptions> ReadSplitOptions(std::string_view name, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments(name, arguments, {"sep", "maxsplit"}));
  SplitOptions options{std::nullopt, -1};
  ASSIGN_OR_RETURN(options.splits_max, IntegerOr(name, bound[1], -1));
  if (options.splits_max < 0) {
    options.splits_max = Integer{1} << 62;
  }
  if (bound[0] != nullptr && !bound[0]->Is(Kind::kNone)) {
    ASSIGN_OR_RETURN(options.separator, RequireString(name, bound[0]));
    if (options.separator->empty()) {
      return TemplateError(name, "(): empty separator");
    }
  }
  return options;
}

// Every piece costs memory before it becomes a value.
// Of a list that moves when it grows.
absl::Status SpendPiece(Runtime& runtime) { return runtime.SpendBytes(2 * sizeof(TracedText)); }

absl::StatusOr<std::vector<TracedText>> SplitBySpace(Runtime& runtime, const TracedText& text,
                                                     Integer splits_max, bool from_right) {
  std::vector<TracedText> pieces;
  size_t begin = 0;
  size_t end = text.size();
  while (true) {
    const StripRange rest = StripSpace(text.bytes().substr(begin, end - begin),
                                       /*left=*/!from_right, /*right=*/from_right);
    const size_t base = begin;
    begin = base + rest.begin;
    end = base + rest.end;
    if (begin >= end) {
      break;
    }
    RETURN_IF_ERROR(SpendPiece(runtime));
    if (splits_max-- == 0) {
      pieces.push_back(text.Slice(begin, end));
      break;
    }
    if (from_right) {
      size_t word = end;
      while (word > begin) {
        size_t previous = word - 1;
        while (previous > begin &&
               (static_cast<unsigned char>(text.bytes()[previous]) & 0xC0) == 0x80) {
          --previous;
        }
        if (IsSpace(DecodeAt(text.bytes(), previous).code_point)) {
          break;
        }
        word = previous;
      }
      pieces.push_back(text.Slice(word, end));
      end = word;
      continue;
    }
    size_t word = begin;
    while (word < end) {
      const DecodedCharacter character = DecodeAt(text.bytes(), word);
      if (IsSpace(character.code_point)) {
        break;
      }
      word += character.bytes;
    }
    pieces.push_back(text.Slice(begin, word));
    begin = word;
  }
  return pieces;
}

Result Split(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const SplitOptions options, ReadSplitOptions("split", arguments));
  if (!options.separator.has_value()) {
    ASSIGN_OR_RETURN(std::vector<TracedText> words,
                     SplitBySpace(runtime, self.text(), options.splits_max, /*from_right=*/false));
    return ListOf(runtime, self, std::move(words));
  }
  std::vector<TracedText> pieces;
  size_t begin = 0;
  Integer splits = 0;
  for (size_t at = self.bytes().find(*options.separator);
       at != std::string_view::npos && splits < options.splits_max;
       at = self.bytes().find(*options.separator, begin)) {
    RETURN_IF_ERROR(SpendPiece(runtime));
    pieces.push_back(self.text().Slice(begin, at));
    begin = at + options.separator->size();
    ++splits;
  }
  pieces.push_back(self.text().Slice(begin, self.text().size()));
  return ListOf(runtime, self, std::move(pieces));
}

Result RightSplit(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const SplitOptions options, ReadSplitOptions("rsplit", arguments));
  std::vector<TracedText> pieces;
  if (!options.separator.has_value()) {
    ASSIGN_OR_RETURN(pieces,
                     SplitBySpace(runtime, self.text(), options.splits_max, /*from_right=*/true));
  } else {
    size_t end = self.text().size();
    const size_t size = options.separator->size();
    for (Integer splits = 0; splits < options.splits_max && end >= size; ++splits) {
      const size_t at = self.bytes().substr(0, end).rfind(*options.separator);
      if (at == std::string_view::npos) {
        break;
      }
      RETURN_IF_ERROR(SpendPiece(runtime));
      pieces.push_back(self.text().Slice(at + size, end));
      end = at;
    }
    pieces.push_back(self.text().Slice(0, end));
  }
  std::reverse(pieces.begin(), pieces.end());
  return ListOf(runtime, self, std::move(pieces));
}

Result SplitLinesMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("splitlines", arguments, {"keepends"}));
  ASSIGN_OR_RETURN(std::vector<TracedText> lines,
                   SplitLines(runtime, self.text(), IsTrueArgument(bound[0])));
  return ListOf(runtime, self, std::move(lines));
}

Result PartitionAt(Runtime& runtime, const Value& self, const Arguments& arguments,
                   std::string_view name, bool from_right) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments(name, arguments, {"sep"}));
  ASSIGN_OR_RETURN(const std::string_view separator, RequireString(name, bound[0]));
  if (separator.empty()) {
    return TemplateError(name, "(): empty separator");
  }
  const TracedText& text = self.text();
  const size_t at = from_right ? text.bytes().rfind(separator) : text.bytes().find(separator);
  std::vector<TracedText> parts(3);
  if (at == std::string_view::npos) {
    parts[from_right ? 2 : 0] = text;
  } else {
    parts[0] = text.Slice(0, at);
    parts[1] = text.Slice(at, at + separator.size());
    parts[2] = text.Slice(at + separator.size(), text.size());
  }
  return ListOf(runtime, self, std::move(parts), SequenceFlavor::kTuple);
}

Result Partition(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return PartitionAt(runtime, self, arguments, "partition", /*from_right=*/false);
}

Result RightPartition(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return PartitionAt(runtime, self, arguments, "rpartition", /*from_right=*/true);
}

Result Join(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("join", arguments, {"iterable"}));
  if (bound[0] == nullptr) {
    return TemplateError("join() needs the items to join");
  }
  ASSIGN_OR_RETURN(const std::vector<Value> items, runtime.Iterate(*bound[0]));
  TracedText joined;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].IsString()) {
      return TemplateError("join(): item ", i, " is of type ", TypeName(items[i]),
                           ", not a string");
    }
    const bool escapes = self.IsMarkup() && !items[i].IsMarkup();
    RETURN_IF_ERROR(
        runtime.SpendGrowth(joined, self.text().footprint() + items[i].text().footprint()));
    if (i > 0) {
      joined.Append(self.text());
    }
    if (escapes) {
      ASSIGN_OR_RETURN(const TracedText escaped, EscapeHtml(runtime, items[i].text()));
      joined.Append(escaped);
    } else {
      joined.Append(items[i].text());
    }
  }
  return runtime.String(std::move(joined), self.string().flavor);
}

constexpr MethodEntry kSearchMethods[] = {
    {"count", Count},
    {"endswith", EndsWith},
    {"find", Find},
    {"index", Index},
    {"join", Join},
    {"partition", Partition},
    {"replace", ReplaceMethod},
    {"rfind", RightFind},
    {"rindex", RightIndex},
    {"rpartition", RightPartition},
    {"rsplit", RightSplit},
    {"split", Split},
    {"splitlines", SplitLinesMethod},
    {"startswith", StartsWith},
};

}  // namespace

absl::Span<const MethodEntry> StringSearchMethods() { return kSearchMethods; }

absl::StatusOr<TracedText> Replace(Runtime& runtime, const TracedText& text,
                                   std::string_view old_text, const TracedText& new_text,
                                   Integer count) {
  RETURN_IF_ERROR(runtime.SpendBytes(text.footprint()));
  const std::string_view bytes = text.bytes();
  TracedText out;
  size_t copied = 0;
  size_t search = 0;
  for (Integer replaced = 0; count < 0 || replaced < count; ++replaced) {
    const size_t at = old_text.empty() ? search : bytes.find(old_text, search);
    if (at == std::string_view::npos || at > bytes.size()) {
      break;
    }
    RETURN_IF_ERROR(runtime.SpendGrowth(out, new_text.footprint() + (at - copied)));
    out.AppendSlice(text, copied, at);
    out.Append(new_text);
    copied = at + old_text.size();
    search = copied;
    if (old_text.empty()) {
      search = at < bytes.size() ? at + DecodeAt(bytes, at).bytes : at + 1;
    }
  }
  out.AppendSlice(text, copied, bytes.size());
  return out;
}

absl::StatusOr<std::vector<TracedText>> SplitLines(Runtime& runtime, const TracedText& text,
                                                   bool keep_ends) {
  RETURN_IF_ERROR(runtime.SpendBytes(text.footprint()));
  const std::string_view bytes = text.bytes();
  std::vector<TracedText> lines;
  size_t begin = 0;
  for (size_t offset = 0; offset < bytes.size();) {
    const DecodedCharacter character = DecodeAt(bytes, offset);
    const char32_t c = character.code_point;
    const bool ends_line = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                           c == 0x2028 || c == 0x2029;
    size_t next = offset + character.bytes;
    if (ends_line) {
      next += c == '\r' && next < bytes.size() && bytes[next] == '\n' ? 1 : 0;
      RETURN_IF_ERROR(SpendPiece(runtime));
      lines.push_back(text.Slice(begin, keep_ends ? next : offset));
      begin = next;
    }
    offset = next;
  }
  if (begin < bytes.size()) {
    lines.push_back(text.Slice(begin, bytes.size()));
  }
  return lines;
}

absl::StatusOr<std::vector<TracedText>> SplitWords(Runtime& runtime, const TracedText& text) {
  RETURN_IF_ERROR(runtime.SpendBytes(text.footprint()));
  std::vector<TracedText> words;
  size_t begin = 0;
  bool in_word = false;
  for (size_t offset = 0; offset < text.size();) {
    const DecodedCharacter character = DecodeAt(text.bytes(), offset);
    if (IsSpace(character.code_point)) {
      if (in_word) {
        RETURN_IF_ERROR(SpendPiece(runtime));
        words.push_back(text.Slice(begin, offset));
      }
      in_word = false;
    } else if (!in_word) {
      in_word = true;
      begin = offset;
    }
    offset += character.bytes;
  }
  if (in_word) {
    words.push_back(text.Slice(begin, text.size()));
  }
  return words;
}

}  // namespace trireme::text::jinja
