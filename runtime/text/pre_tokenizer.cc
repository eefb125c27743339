#include "runtime/text/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/pre_tokenizer_families.h"
#include "runtime/text/unicode_classes.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

// A class byte: ASCII is itself; other characters have the high bit, their category in the low four
// bits and these marks of membership in sets that a family names by code points.
constexpr uint8_t kNotAscii = 0x80;
constexpr uint8_t kLongS = 0x40;  // U+017F, which a caseless "s" matches in the published engines
constexpr uint8_t kCoderScripts = 0x20;
constexpr uint8_t kHanAndKana = 0x10;
constexpr uint8_t kCategoryMask = 0x0f;
static_assert(kUnicodeCategories <= kCategoryMask + 1);

struct CodePointRange {
  char32_t first;
  char32_t last;
};
// Of deepseek-v3: CJK ideographs, Hiragana, Katakana.
constexpr CodePointRange kHanAndKanaRanges[] = {{0x3040, 0x30ff}, {0x4e00, 0x9fa5}};
// Of deepseek-coder.
constexpr CodePointRange kCoderScriptRanges[] = {{0x800, 0x9fa5}, {0xac00, 0xd7ff}};

bool IsIn(char32_t code_point, absl::Span<const CodePointRange> ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [code_point](const CodePointRange& range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

uint8_t ClassOf(char32_t code_point, UnicodeCategory category) {
  if (code_point < 0x80) {
    return static_cast<uint8_t>(code_point);
  }
  int value = kNotAscii | static_cast<int>(category);
  value |= code_point == 0x17f ? kLongS : 0;
  value |= IsIn(code_point, kHanAndKanaRanges) ? kHanAndKana : 0;
  value |= IsIn(code_point, kCoderScriptRanges) ? kCoderScripts : 0;
  return static_cast<uint8_t>(value);
}

// The names that stand for sets of class bytes in a family's expressions, always inside brackets.
bool Contains(absl::string_view name, uint8_t class_byte) {
  const bool ascii = class_byte < kNotAscii;
  if (name == "\\p{LongS}") {
    return !ascii && (class_byte & kLongS) != 0;
  }
  if (name == "\\p{HanAndKana}") {
    return !ascii && (class_byte & kHanAndKana) != 0;
  }
  if (name == "\\p{CoderScripts}") {
    return !ascii && (class_byte & kCoderScripts) != 0;
  }
  static constexpr absl::string_view kNames[kUnicodeCategories] = {
      "",       "\\p{Lu}", "\\p{Ll}", "\\p{Lt}", "\\p{Lm}", "\\p{Lo}",
      "\\p{N}", "\\p{M}",  "\\p{P}",  "\\p{S}",  "\\s"};
  const int category =
      ascii ? static_cast<int>(CategoryOf(class_byte)) : class_byte & kCategoryMask;
  if (category >= kUnicodeCategories) {
    return false;
  }
  const absl::string_view own_name = kNames[category];
  return name == own_name || (name == "\\p{L}" && absl::StartsWith(own_name, "\\p{L"));
}

// `expression` with every such name spelled out as the bytes that it stands for.
std::string OverClassBytes(absl::string_view expression) {
  std::vector<std::pair<std::string, std::string>> replacements;
  for (const absl::string_view name :
       {"\\p{Lu}", "\\p{Ll}", "\\p{Lt}", "\\p{Lm}", "\\p{Lo}", "\\p{L}", "\\p{N}", "\\p{M}",
        "\\p{P}", "\\p{S}", "\\s", "\\p{LongS}", "\\p{HanAndKana}", "\\p{CoderScripts}"}) {
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) {
      if (Contains(name, static_cast<uint8_t>(byte))) {
        absl::StrAppendFormat(&bytes, "\\x%02x", byte);
      }
    }
    replacements.emplace_back(name, bytes);
  }
  return absl::StrReplaceAll(expression, replacements);
}

struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

}  // namespace

// One compiled expression over class bytes.
class PreTokenizer::Expression {
 public:
  explicit Expression(absl::string_view pattern) {
    const std::string text = OverClassBytes(pattern);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, &error,
                          &offset, nullptr);
    CHECK(code_ != nullptr);
    // Where the system forbids generated code, the interpreter runs instead.
    (void)pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE);
  }
  ~Expression() { pcre2_code_free(code_); }
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;

  // Cuts each piece of `classes` that ends at one of `ends` into matches and the gaps between them.
  absl::StatusOr<std::vector<uint32_t>> Split(absl::string_view classes,
                                              absl::Span<const uint32_t> ends) const {
    const std::unique_ptr<pcre2_match_data, FreeMatchData> data(
        pcre2_match_data_create(1, nullptr));
    const std::unique_ptr<pcre2_match_context, FreeMatchContext> context(
        pcre2_match_context_create(nullptr));
    // A match backs up at most once over what it read, so this is never reached; it is a fuse.
    const uint64_t limit = 10000 + 32 * static_cast<uint64_t>(classes.size());
    pcre2_set_match_limit(context.get(),
                          static_cast<uint32_t>(std::min<uint64_t>(limit, UINT32_MAX)));
    std::vector<uint32_t> result;
    result.reserve(ends.size());
    uint32_t begin = 0;
    for (const uint32_t end : ends) {
      const absl::string_view piece = classes.substr(begin, end - begin);
      size_t position = 0;
      while (position < piece.size() && piece.size() > 1) {
        ASSIGN_OR_RETURN(const Found found, Match(piece, position, data.get(), context.get()));
        if (found.begin > position && found.begin < piece.size()) {
          result.push_back(begin + static_cast<uint32_t>(found.begin));
        }
        if (found.end == piece.size()) {
          break;
        }
        result.push_back(begin + static_cast<uint32_t>(found.end));
        position = found.end;
      }
      result.push_back(end);
      begin = end;
    }
    return result;
  }

 private:
  struct Found {
    size_t begin;
    size_t end;
  };

  // The next match at or after `position`, never empty; both ends at the piece's end when there is
  // none.
  absl::StatusOr<Found> Match(absl::string_view piece, size_t position, pcre2_match_data* data,
                              pcre2_match_context* context) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
    int result = pcre2_match(code_, subject, piece.size(), position, PCRE2_NOTEMPTY, data, context);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
      result = pcre2_match(code_, subject, piece.size(), position, PCRE2_NOTEMPTY | PCRE2_NO_JIT,
                           data, context);
    }
    if (result == PCRE2_ERROR_NOMATCH) {
      return Found{piece.size(), piece.size()};
    }
    if (result < 0) {
      return absl::InternalError(
          absl::StrFormat("the pre-tokenizer's expression failed on %d characters: PCRE2 error %d",
                          piece.size(), result));
    }
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data);
    return Found{ends[0], ends[1]};
  }

  pcre2_code* code_;
};

PreTokenizer::PreTokenizer(PreTokenizerTraits traits) : traits_(traits) {
  std::map<std::string, uint16_t> known_pages;
  const absl::Span<const UnicodeRun> runs = UnicodeRuns();
  size_t run = 0;
  for (char32_t first = 0; first <= 0x10ffff; first += 256) {
    std::string page(256, '\0');
    for (char32_t i = 0; i < 256; ++i) {
      while (run + 1 < runs.size() && runs[run + 1].first <= first + i) {
        ++run;
      }
      page[i] = static_cast<char>(ClassOf(first + i, runs[run].category));
    }
    const auto [entry, is_new] =
        known_pages.try_emplace(page, static_cast<uint16_t>(known_pages.size()));
    if (is_new) {
      pages_.insert(pages_.end(), page.begin(), page.end());
    }
    page_index_.push_back(entry->second);
  }
}

PreTokenizer::~PreTokenizer() = default;

absl::StatusOr<std::unique_ptr<PreTokenizer>> PreTokenizer::Create(absl::string_view name) {
  ASSIGN_OR_RETURN(const PreTokenizerFamily family, FindPreTokenizerFamily(name));
  auto pre_tokenizer = std::unique_ptr<PreTokenizer>(new PreTokenizer(family.traits));
  for (const std::string& expression : family.expressions) {
    pre_tokenizer->expressions_.push_back(std::make_unique<Expression>(expression));
  }
  return pre_tokenizer;
}

std::string PreTokenizer::ClassesOf(absl::string_view text) const {
  std::string classes;
  classes.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      classes.push_back(text[i++]);
      continue;
    }
    const Utf8Unit unit = FirstUtf8Unit(text.substr(i));
    CHECK(unit.kind == Utf8UnitKind::kCharacter);
    const size_t page = page_index_[unit.code_point >> 8];
    classes.push_back(static_cast<char>(pages_[page * 256 + (unit.code_point & 0xff)]));
    i += unit.bytes;
  }
  return classes;
}

absl::StatusOr<std::vector<uint32_t>> PreTokenizer::Split(absl::string_view text) const {
  CHECK_LT(text.size(), size_t{UINT32_MAX});
  if (text.empty()) {
    return std::vector<uint32_t>();
  }
  const std::string classes = ClassesOf(text);
  std::vector<uint32_t> ends = {static_cast<uint32_t>(classes.size())};
  for (const auto& expression : expressions_) {
    ASSIGN_OR_RETURN(ends, expression->Split(classes, ends));
  }
  if (classes.size() == text.size()) {
    return ends;
  }
  // From characters to bytes.
  uint32_t byte = 0;
  uint32_t character = 0;
  for (uint32_t& end : ends) {
    for (; character < end; ++character) {
      do {
        ++byte;
      } while (byte < text.size() && (static_cast<unsigned char>(text[byte]) & 0xc0) == 0x80);
    }
    end = byte;
  }
  return ends;
}

}  // namespace trireme::text
