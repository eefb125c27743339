#include "runtime/text/character_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

constexpr size_t kClassesMax = 256;
constexpr size_t kPageCharacters = 256;

// Longer than nearly all words, so that one attempt is enough for them; and at how many places an
// attempt may begin in it.
constexpr size_t kFirstWindow = 256;
constexpr size_t kStartsAtOnce = 64;
// Windows double until they hold what an attempt reads, so a run of n characters takes 4 n; this
// leaves room for expressions that read a run four times.
constexpr uint64_t kLookAheadPerByte = 16;
constexpr uint64_t kLookAheadAtLeast = uint64_t{1} << 20;

// Where the membership in any set changes, ascending, 0 first.
std::vector<char32_t> Borders(const std::vector<CharacterSet>& sets) {
  std::vector<char32_t> borders = {0};
  for (const CharacterSet& set : sets) {
    for (const CodePointRange& range : set.ranges()) {
      borders.push_back(range.first);
      if (range.last < kLastCodePoint) {
        borders.push_back(range.last + 1);
      }
    }
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

// The class of each stretch between borders, and for each set the classes in it.
struct Classes {
  std::vector<uint8_t> of_stretch;            // [borders]
  std::vector<std::vector<uint8_t>> members;  // [sets]
};

absl::StatusOr<Classes> MakeClasses(const std::vector<CharacterSet>& sets,
                                    const std::vector<char32_t>& borders) {
  // Sets that are equal need one bit of the signature only; patterns repeat their sets.
  Classes classes;
  classes.members.resize(sets.size());
  std::vector<size_t> next_range(sets.size(), 0);
  std::map<std::vector<bool>, uint8_t> known;
  std::vector<bool> signature(sets.size());
  for (const char32_t border : borders) {
    for (size_t i = 0; i < sets.size(); ++i) {
      const absl::Span<const CodePointRange> ranges = sets[i].ranges();
      size_t& range = next_range[i];
      while (range < ranges.size() && ranges[range].last < border) {
        ++range;
      }
      signature[i] = range < ranges.size() && ranges[range].first <= border;
    }
    if (known.size() == kClassesMax && !known.contains(signature)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "a regular expression that tells more than %d kinds of characters apart", kClassesMax));
    }
    const auto [entry, is_new] = known.try_emplace(signature, static_cast<uint8_t>(known.size()));
    for (size_t i = 0; is_new && i < sets.size(); ++i) {
      if (signature[i]) {
        classes.members[i].push_back(entry->second);
      }
    }
    classes.of_stretch.push_back(entry->second);
  }
  return classes;
}

std::string OverClasses(const PatternSyntax& syntax, const Classes& classes) {
  std::string expression;
  for (const PatternItem& item : syntax.items) {
    absl::StrAppend(&expression, item.operators);
    if (item.set < 0) {
      continue;
    }
    const std::vector<uint8_t>& members = classes.members[static_cast<size_t>(item.set)];
    absl::StrAppend(&expression, members.empty() ? "(?!)" : "[");
    for (const uint8_t member : members) {
      absl::StrAppendFormat(&expression, "\\x%02x", member);
    }
    absl::StrAppend(&expression, members.empty() ? "" : "]");
  }
  return expression;
}

struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

}  // namespace

struct CharacterPattern::Scratch {
  std::unique_ptr<pcre2_match_data, FreeMatchData> data{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context{
      pcre2_match_context_create(nullptr)};
  CutWork work;
  uint64_t look_ahead_left = 0;  // bytes that windows beyond the first may have
  MatchMemo memo;
  WholePieceMemo whole_pieces;
};

CharacterPattern::~CharacterPattern() { pcre2_code_free(static_cast<pcre2_code*>(code_)); }

absl::StatusOr<std::unique_ptr<CharacterPattern>> CharacterPattern::Create(
    absl::string_view pattern) {
  ASSIGN_OR_RETURN(const PatternSyntax syntax, ParsePattern(pattern));
  auto result = std::unique_ptr<CharacterPattern>(new CharacterPattern());
  RETURN_IF_ERROR(result->Compile(syntax));
  return result;
}

absl::StatusOr<std::unique_ptr<CharacterPattern>> CharacterPattern::CreateLiteral(
    absl::string_view text) {
  if (text.size() > kPatternBytesMax) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a pattern of %d bytes; at most %d are supported", text.size(), kPatternBytesMax));
  }
  PatternSyntax syntax;
  while (!text.empty()) {
    const Utf8Unit unit = FirstUtf8Unit(text);
    syntax.items.push_back({"", static_cast<int>(syntax.sets.size())});
    syntax.sets.push_back(CharacterSet{{unit.code_point, unit.code_point}});
    text.remove_prefix(unit.bytes);
  }
  auto result = std::unique_ptr<CharacterPattern>(new CharacterPattern());
  RETURN_IF_ERROR(result->Compile(syntax));
  return result;
}

absl::Status CharacterPattern::Compile(const PatternSyntax& syntax) {
  const std::vector<char32_t> borders = Borders(syntax.sets);
  ASSIGN_OR_RETURN(const Classes classes, MakeClasses(syntax.sets, borders));
  const std::string expression = OverClasses(syntax, classes);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* const code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                    PCRE2_USE_OFFSET_LIMIT, &error, &offset, nullptr);
  if (code == nullptr) {
    PCRE2_UCHAR message[128] = {};
    pcre2_get_error_message(error, message, sizeof(message));
    return absl::InvalidArgumentError(absl::StrCat("a regular expression that does not work: ",
                                                   reinterpret_cast<const char*>(message)));
  }
  code_ = code;
  uint32_t look_behind = 0;
  pcre2_pattern_info(code, PCRE2_INFO_MAXLOOKBEHIND, &look_behind);
  looks_behind_ = look_behind > 0;
  // Where the system forbids generated code, the interpreter runs instead.
  has_jit_ = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD) == 0;

  std::map<std::vector<uint8_t>, uint16_t> known_pages;
  std::vector<uint8_t> page(kPageCharacters);
  size_t stretch = 0;
  for (char32_t first = 0; first <= kLastCodePoint; first += kPageCharacters) {
    for (char32_t i = 0; i < kPageCharacters; ++i) {
      while (stretch + 1 < borders.size() && borders[stretch + 1] <= first + i) {
        ++stretch;
      }
      page[i] = classes.of_stretch[stretch];
    }
    const auto [entry, is_new] =
        known_pages.try_emplace(page, static_cast<uint16_t>(known_pages.size()));
    if (is_new) {
      class_pages_.insert(class_pages_.end(), page.begin(), page.end());
    }
    page_index_.push_back(entry->second);
  }
  return absl::OkStatus();
}

// The result of PCRE2 for a match that starts at one of `starts` and reads at most `window` bytes
// from the first of them on; PCRE2_ERROR_PARTIAL when it wants to see what follows those.
int CharacterPattern::Attempt(absl::string_view classes, Starts starts, size_t window,
                              Scratch* scratch) const {
  const auto* const code = static_cast<const pcre2_code*>(code_);
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(classes.data());
  const bool is_all = classes.size() - starts.first <= window;
  const size_t size = is_all ? classes.size() : starts.first + window;
  const uint32_t options = is_all ? 0 : PCRE2_PARTIAL_HARD;
  scratch->work.attempts += 1;
  scratch->work.window_bytes += size - starts.first;
  pcre2_match_context* const context = scratch->context.get();
  // A published expression backs up at most once over what it reads; this is a fuse for others.
  const uint64_t limit = 10000 + 32 * static_cast<uint64_t>(size - starts.first);
  pcre2_set_match_limit(context, static_cast<uint32_t>(std::min<uint64_t>(limit, UINT32_MAX)));
  pcre2_set_offset_limit(context, starts.last);
  if (has_jit_) {
    const int result =
        pcre2_jit_match(code, subject, size, starts.first, options, scratch->data.get(), context);
    if (result != PCRE2_ERROR_JIT_STACKLIMIT) {
      return result;
    }
  }
  return pcre2_match(code, subject, size, starts.first, options | PCRE2_NO_JIT, scratch->data.get(),
                     context);
}

// Finds out what a memo may keep of `position`, where it does not depend on what stands before:
// what an attempt comes to that sees no more than the memo does.
void CharacterPattern::Learn(absl::string_view classes, size_t position, Scratch* scratch,
                             MatchMemo::Entry* entry) const {
  const bool is_rest = classes.size() - position <= MatchMemo::kWindow;
  const Starts starts = {position, is_rest ? classes.size() : position};
  const int result = Attempt(classes, starts, MatchMemo::kWindow, scratch);
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(scratch->data.get());
  entry->state = MatchMemo::State::kKnown;
  if (result >= 0) {
    entry->begin = static_cast<uint8_t>(ends[0] - position);
    entry->end = static_cast<uint8_t>(ends[1] - position);
  } else if (result == PCRE2_ERROR_NOMATCH && is_rest) {
    entry->begin = static_cast<uint8_t>(classes.size() - position);
    entry->end = entry->begin;
  } else {
    entry->state = MatchMemo::State::kUnknown;
  }
}

// The first match from `position` on, which is before the end; where there is none, the end.
absl::StatusOr<CharacterPattern::Match> CharacterPattern::FindMatch(absl::string_view classes,
                                                                    size_t position,
                                                                    Scratch* scratch) const {
  if (position == 0 || !looks_behind_) {
    MatchMemo::Entry* const entry = scratch->memo.Find(classes, position);
    if (entry->state == MatchMemo::State::kAgain) {
      Learn(classes, position, scratch, entry);
    }
    if (entry->state == MatchMemo::State::kKnown) {
      return Match{position + entry->begin, position + entry->end};
    }
  }
  return RunMatch(classes, position, scratch);
}

absl::StatusOr<CharacterPattern::Match> CharacterPattern::RunMatch(absl::string_view classes,
                                                                   size_t position,
                                                                   Scratch* scratch) const {
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(scratch->data.get());
  while (position <= classes.size()) {
    Starts starts = {position, position + kStartsAtOnce - 1};
    size_t window = kFirstWindow;
    int result = Attempt(classes, starts, window, scratch);
    while (result == PCRE2_ERROR_PARTIAL) {
      starts = {ends[0], ends[0]};  // none before it matches
      window *= 2;
      if (window > scratch->look_ahead_left) {
        return absl::ResourceExhaustedError(absl::StrFormat(
            "the tokenizer's regular expression reads too far ahead for too short matches in %d "
            "characters",
            classes.size()));
      }
      scratch->look_ahead_left -= window;
      result = Attempt(classes, starts, window, scratch);
    }
    if (result == PCRE2_ERROR_NOMATCH) {
      position = starts.last + 1;
      continue;
    }
    if (result < 0) {
      return absl::ResourceExhaustedError(absl::StrFormat(
          "the tokenizer's regular expression gave up on %d characters (PCRE2 error %d): it "
          "backtracks too often for this text",
          classes.size(), result));
    }
    return Match{ends[0], ends[1]};
  }
  return Match{classes.size(), classes.size()};
}

// Calls `add` with the parts, whose places are counted in characters of the piece.
template <typename Add>
absl::Status CharacterPattern::CutPiece(absl::string_view classes, Scratch* scratch,
                                        const Add& add) const {
  size_t done = 0;      // parts reach up to here
  size_t position = 0;  // where to look on
  bool has_match = false;
  while (position < classes.size()) {
    ASSIGN_OR_RETURN(const Match match, FindMatch(classes, position, scratch));
    if (match.begin == classes.size()) {
      break;
    }
    // An empty match right behind another one is none.
    if (match.begin == match.end && has_match && match.end == done) {
      position = match.end + 1;
      continue;
    }
    if (done < match.begin) {
      RETURN_IF_ERROR(add(match.begin, /*is_match=*/false));
    }
    if (match.begin < match.end) {
      RETURN_IF_ERROR(add(match.end, /*is_match=*/true));
    }
    done = match.end;
    position = match.end;
    has_match = true;
  }
  return done < classes.size() ? add(classes.size(), /*is_match=*/false) : absl::OkStatus();
}

void CharacterPattern::AppendClasses(absl::string_view text, std::string* classes) const {
  const size_t before = classes->size();
  classes->resize(before + text.size());
  char* out = classes->data() + before;
  for (size_t i = 0; i < text.size();) {
    const Utf8Character character = ValidUtf8At(text, i);
    const size_t page = page_index_[character.code_point / kPageCharacters];
    *out++ = static_cast<char>(
        class_pages_[kPageCharacters * page + character.code_point % kPageCharacters]);
    i += character.bytes;
  }
  classes->resize(static_cast<size_t>(out - classes->data()));
}

absl::StatusOr<std::vector<PatternPart>> CharacterPattern::Cut(absl::string_view text,
                                                               absl::Span<const TextPiece> pieces,
                                                               CutWork* work) const {
  PatternCutter cutter(this, text);
  std::vector<PatternPart> all;
  RETURN_IF_ERROR(cutter.Cut(pieces, [&all](absl::Span<const PatternPart> parts) {
    all.insert(all.end(), parts.begin(), parts.end());
    return absl::OkStatus();
  }));
  if (work != nullptr) {
    work->attempts += cutter.work().attempts;
    work->window_bytes += cutter.work().window_bytes;
  }
  return all;
}

PatternCutter::PatternCutter(const CharacterPattern* pattern, absl::string_view text)
    : pattern_(*pattern), text_(text), scratch_(std::make_unique<CharacterPattern::Scratch>()) {
  CHECK_LT(text.size(), size_t{UINT32_MAX});
  scratch_->look_ahead_left = kLookAheadAtLeast + kLookAheadPerByte * text.size();
}

PatternCutter::~PatternCutter() = default;

const CutWork& PatternCutter::work() const { return scratch_->work; }

absl::Status PatternCutter::Cut(absl::Span<const TextPiece> pieces, PartUser use) {
  for (const TextPiece& piece : pieces) {
    const size_t bytes = piece.end - piece.begin;
    WholePieceMemo::Entry* const whole =
        bytes <= WholePieceMemo::kBytesMax ? scratch_->whole_pieces.Find(text_, piece.begin, bytes)
                                           : nullptr;
    if (whole != nullptr && whole->outcome != WholePieceMemo::Outcome::kUnknown) {
      if (count_ == kPartsAtOnce) {
        RETURN_IF_ERROR(HandOver(use));
      }
      parts_[count_++] = {piece, whole->outcome == WholePieceMemo::Outcome::kMatch};
      continue;
    }
    RETURN_IF_ERROR(CutOne(piece, use));
    const PatternPart& last = parts_[count_ - 1];
    if (whole != nullptr && last.piece.begin == piece.begin) {
      whole->outcome =
          last.is_match ? WholePieceMemo::Outcome::kMatch : WholePieceMemo::Outcome::kGap;
    }
  }
  return HandOver(use);
}

absl::Status PatternCutter::HandOver(PartUser use) {
  const size_t count = std::exchange(count_, 0);
  return count == 0 ? absl::OkStatus() : use({parts_.get(), count});
}

absl::Status PatternCutter::CutOne(const TextPiece& piece, PartUser use) {
  const absl::string_view bytes = text_.substr(piece.begin, piece.end - piece.begin);
  classes_.clear();
  pattern_.AppendClasses(bytes, &classes_);
  const bool is_ascii = classes_.size() == bytes.size();
  uint32_t byte = 0;  // parts reach up to here
  size_t character = 0;
  return pattern_.CutPiece(classes_, scratch_.get(), [&](size_t end, bool is_match) {
    const uint32_t begin = byte;
    if (is_ascii) {
      byte = static_cast<uint32_t>(end);
    }
    for (; !is_ascii && character < end; ++character) {
      do {
        ++byte;
      } while (byte < bytes.size() && (static_cast<unsigned char>(bytes[byte]) & 0xc0) == 0x80);
    }
    if (count_ == kPartsAtOnce) {
      RETURN_IF_ERROR(HandOver(use));
    }
    parts_[count_++] = {{piece.begin + begin, piece.begin + byte}, is_match};
    return absl::OkStatus();
  });
}

}  // namespace trireme::text
