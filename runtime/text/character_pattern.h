// A regular expression over characters, with the classes of Unicode 16.0 whatever the installed
// library knows.
//
// How: the characters that an expression cannot tell apart form a class. Every character of a text
// is turned into the one byte of its class, the expression into one over these bytes, and PCRE2
// runs on them: a class test is one lookup, and no UTF-8 is decoded twice.
//
// Time is linear in the text, whatever the expression: an attempt sees a window of the text first,
// and more of it only for the one start whose match reads to the window's end, so how far attempts
// look ahead is known, and bounded. An expression that reads far ahead for many short matches, as
// "a+b|a" does, is stopped with an error. Published ones match nearly all that they read.
#ifndef TRIREME_RUNTIME_TEXT_CHARACTER_PATTERN_H_
#define TRIREME_RUNTIME_TEXT_CHARACTER_PATTERN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/text/match_memo.h"
#include "runtime/text/pattern_syntax.h"

namespace trireme::text {

// Bytes [begin, end) of a text.
struct TextPiece {
  uint32_t begin;
  uint32_t end;
};

// A part of a piece: a match of the pattern, or what lies between two.
struct PatternPart {
  TextPiece piece;
  bool is_match;
};

// What a cut took, for tests: attempts to match, and the bytes of their windows.
struct CutWork {
  uint64_t attempts = 0;
  uint64_t window_bytes = 0;
};

// Immutable after Create; any number of threads may call the rest.
class CharacterPattern {
 public:
  // Errors: those of ParsePattern; InvalidArgument when PCRE2 refuses it or it tells more than 256
  // classes of characters apart.
  static absl::StatusOr<std::unique_ptr<CharacterPattern>> Create(absl::string_view pattern);

  // The pattern that matches `text` literally.
  static absl::StatusOr<std::unique_ptr<CharacterPattern>> CreateLiteral(absl::string_view text);

  ~CharacterPattern();
  CharacterPattern(const CharacterPattern&) = delete;
  CharacterPattern& operator=(const CharacterPattern&) = delete;

  // Cuts each of `pieces` (ascending, at character boundaries) of `text` (valid UTF-8, below 2^32
  // bytes) into matches and the gaps between them; an empty match cuts a gap and is left out. A
  // match sees nothing outside its piece. Errors: ResourceExhausted when an expression backtracks
  // or looks ahead beyond limits that are linear in the text. `work`, unless null, is added to.
  absl::StatusOr<std::vector<PatternPart>> Cut(absl::string_view text,
                                               absl::Span<const TextPiece> pieces,
                                               CutWork* work = nullptr) const;

 private:
  friend class PatternCutter;
  struct Scratch;
  struct Starts {
    size_t first;
    size_t last;
  };
  struct Match {
    size_t begin;
    size_t end;
  };

  CharacterPattern() = default;
  absl::Status Compile(const PatternSyntax& syntax);
  int Attempt(absl::string_view classes, Starts starts, size_t window, Scratch* scratch) const;
  absl::StatusOr<Match> FindMatch(absl::string_view classes, size_t position,
                                  Scratch* scratch) const;
  absl::StatusOr<Match> RunMatch(absl::string_view classes, size_t position,
                                 Scratch* scratch) const;
  void Learn(absl::string_view classes, size_t position, Scratch* scratch,
             MatchMemo::Entry* entry) const;
  void AppendClasses(absl::string_view text, std::string* classes) const;
  template <typename Add>
  absl::Status CutPiece(absl::string_view classes, Scratch* scratch, const Add& add) const;

  void* code_ = nullptr;  // pcre2_code
  bool has_jit_ = false;
  bool looks_behind_ = false;
  std::vector<uint8_t> class_pages_;  // 256 code points a page, equal pages once
  std::vector<uint16_t> page_index_;  // [code point / 256]
};

// The cuts of one pattern in one text, a few pieces after the others, for one thread: the parts of
// a long text are handed over in batches that stay in a cache.
class PatternCutter {
 public:
  static constexpr size_t kPartsAtOnce = 4096;
  using PartUser = absl::FunctionRef<absl::Status(absl::Span<const PatternPart>)>;

  // Both must outlive it.
  PatternCutter(const CharacterPattern* pattern, absl::string_view text);
  ~PatternCutter();

  // As CharacterPattern::Cut, of pieces behind those of earlier calls; limits are those of the
  // whole text. `use` gets at most kPartsAtOnce parts, all of which `pieces` make before the end.
  absl::Status Cut(absl::Span<const TextPiece> pieces, PartUser use);

  const CutWork& work() const;  // so far

 private:
  absl::Status HandOver(PartUser use);
  absl::Status CutOne(const TextPiece& piece, PartUser use);

  const CharacterPattern& pattern_;
  const absl::string_view text_;
  const std::unique_ptr<CharacterPattern::Scratch> scratch_;
  std::string classes_;  // of a piece
  // Those not handed over yet. Plain memory: a short text touches little of it.
  const std::unique_ptr<PatternPart[]> parts_ =
      std::make_unique_for_overwrite<PatternPart[]>(kPartsAtOnce);
  size_t count_ = 0;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_CHARACTER_PATTERN_H_
