#include "runtime/text/character_pattern.h"

#include <algorithm>
#include <random>

#include "gtest/gtest.h"

namespace trireme::text {
namespace {

std::string CutsOf(const CharacterPattern& pattern, absl::string_view text,
                   absl::Span<const TextPiece> pieces) {
  const auto parts = pattern.Cut(text, pieces);
  EXPECT_TRUE(parts.ok()) << parts.status();
  std::string shown;
  for (const PatternPart& part : *parts) {
    const std::string bytes(text.substr(part.piece.begin, part.piece.end - part.piece.begin));
    shown += part.is_match ? "[" + bytes + "]" : bytes;
  }
  return shown;
}

std::string Cuts(const CharacterPattern& pattern, absl::string_view text) {
  const TextPiece whole = {0, static_cast<uint32_t>(text.size())};
  return CutsOf(pattern, text, absl::MakeConstSpan(&whole, 1));
}

std::unique_ptr<CharacterPattern> Compiled(absl::string_view pattern) {
  auto compiled = CharacterPattern::Create(pattern);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return compiled.ok() ? *std::move(compiled) : nullptr;
}

TEST(CharacterPattern, CutsIntoMatchesAndGaps) {
  EXPECT_EQ(Cuts(*Compiled(R"(\d+)"), "a12b\xd9\xa3!"), "a[12]b[\xd9\xa3]!");
  EXPECT_EQ(Cuts(*Compiled(R"(\bw\w*)"), "we saw w"), "[we] saw [w]");
  EXPECT_EQ(Cuts(*Compiled("^a|b$"), "a\nab\nba"), "[a]\n[a][b]\nba");
  EXPECT_EQ(Cuts(*Compiled("(?<!a)b"), "abb"), "ab[b]");
}

TEST(CharacterPattern, KnowsLettersNewerThanTheLibrary) {
  // U+10D40 and U+10D50 came with Unicode 16.
  EXPECT_EQ(Cuts(*Compiled(R"(\p{L}+)"), "1\xf0\x90\xb5\x90x"), "1[\xf0\x90\xb5\x90x]");
  EXPECT_EQ(Cuts(*Compiled(R"(\p{N})"), "\xf0\x90\xb5\x80"), "[\xf0\x90\xb5\x80]");
}

TEST(CharacterPattern, EmptyMatchesCutAndAreLeftOut) {
  const auto pattern = Compiled("x*");
  const TextPiece whole = {0, 4};
  const auto parts = pattern->Cut("abxc", absl::MakeConstSpan(&whole, 1));
  ASSERT_TRUE(parts.ok());
  ASSERT_EQ(parts->size(), 4u);
  EXPECT_TRUE((*parts)[2].is_match);
}

TEST(CharacterPattern, SeesNothingOutsideItsPiece) {
  const auto pattern = Compiled("(?<=a)b|b(?=c)");
  const std::vector<TextPiece> pieces = {{0, 1}, {1, 2}, {2, 3}};
  const auto parts = pattern->Cut("abc", pieces);
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(parts->size(), 3u);
  EXPECT_FALSE((*parts)[1].is_match);
}

TEST(PatternCutter, HandsPartsOverInBatches) {
  // "1é" repeated: a match of one byte and a gap of two; then, in a call of its own, what is short.
  constexpr uint32_t kUnits = 3 * PatternCutter::kPartsAtOnce / 2 + 5;
  std::string text;
  for (uint32_t i = 0; i < kUnits; ++i) {
    text += "1\xc3\xa9";
  }
  text += "12";
  const auto pattern = Compiled("[0-9]");
  PatternCutter cutter(pattern.get(), text);
  std::vector<PatternPart> all;
  std::vector<size_t> counts;
  const auto collect = [&](absl::Span<const PatternPart> parts) {
    all.insert(all.end(), parts.begin(), parts.end());
    counts.push_back(parts.size());
    return absl::OkStatus();
  };
  const TextPiece first = {0, 3 * kUnits};
  const std::vector<TextPiece> others = {{3 * kUnits, 3 * kUnits + 1},
                                         {3 * kUnits + 1, 3 * kUnits + 2}};
  ASSERT_TRUE(cutter.Cut(absl::MakeConstSpan(&first, 1), collect).ok());
  ASSERT_TRUE(cutter.Cut(others, collect).ok());
  EXPECT_EQ(counts, (std::vector<size_t>{PatternCutter::kPartsAtOnce, PatternCutter::kPartsAtOnce,
                                         PatternCutter::kPartsAtOnce, 10, 2}));
  ASSERT_EQ(all.size(), 2 * kUnits + 2);
  for (uint32_t i = 0; i < kUnits; ++i) {
    EXPECT_TRUE(all[2 * i].is_match);
    EXPECT_EQ(all[2 * i].piece.begin, 3 * i);
    EXPECT_EQ(all[2 * i].piece.end, 3 * i + 1);
    EXPECT_FALSE(all[2 * i + 1].is_match);
    EXPECT_EQ(all[2 * i + 1].piece.begin, 3 * i + 1);
    EXPECT_EQ(all[2 * i + 1].piece.end, 3 * i + 3);
  }
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(all[2 * kUnits + i].is_match);
    EXPECT_EQ(all[2 * kUnits + i].piece.begin, 3 * kUnits + i);
  }
}

TEST(PatternCutter, StopsWhenItsUserFails) {
  const std::string text(3 * PatternCutter::kPartsAtOnce, '1');
  const auto pattern = Compiled("1");
  PatternCutter cutter(pattern.get(), text);
  const TextPiece whole = {0, static_cast<uint32_t>(text.size())};
  int calls = 0;
  const absl::Status status = cutter.Cut(absl::MakeConstSpan(&whole, 1), [&](auto /*parts*/) {
    return ++calls == 2 ? absl::CancelledError("enough") : absl::OkStatus();
  });
  EXPECT_EQ(status.message(), "enough");
  EXPECT_EQ(calls, 2);
}

TEST(CharacterPattern, GivesUpOnExponentialBacktracking) {
  const std::string text = std::string(60, 'a') + "!b";
  const TextPiece whole = {0, static_cast<uint32_t>(text.size())};
  const auto parts = Compiled("(a|a)*b")->Cut(text, absl::MakeConstSpan(&whole, 1));
  EXPECT_EQ(parts.status().code(), absl::StatusCode::kResourceExhausted) << parts.status();
}

TEST(CharacterPattern, RefusesVariableLookBehind) {
  EXPECT_NE(CharacterPattern::Create("(?<=a+)b").status().message().find("does not work"),
            std::string::npos);
}

// The first match behind each other one, of which a call of its own has nothing to remember.
std::string CutsOneByOne(const CharacterPattern& pattern, const std::string& text) {
  std::string shown;
  size_t done = 0;
  while (done < text.size()) {
    const std::string rest = text.substr(done);
    const TextPiece whole = {0, static_cast<uint32_t>(rest.size())};
    const auto parts = pattern.Cut(rest, absl::MakeConstSpan(&whole, 1));
    EXPECT_TRUE(parts.ok()) << parts.status();
    const auto match = std::find_if(parts->begin(), parts->end(),
                                    [](const PatternPart& part) { return part.is_match; });
    if (match == parts->end()) {
      return shown + rest;
    }
    const size_t begin = match->piece.begin;
    const size_t end = match->piece.end;
    shown += rest.substr(0, begin) + "[" + rest.substr(begin, end - begin) + "]";
    done += end;
  }
  return shown;
}

TEST(CharacterPattern, MatchesTheSameWhenShortPiecesComeAgain) {
  std::mt19937 random(5);
  for (const char* expression :
       {R"('s| ?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
        R"(\p{N}{1,3}(?=(\p{N}{3})*b))", "aab|ba", "(?!ab)a|b1", "[ab]{4}|[ab]{6}1", "a+?1|b"}) {
    const auto pattern = Compiled(expression);
    for (int round = 0; round < 30; ++round) {
      std::string text;
      while (text.size() < 300) {
        text += absl::string_view("ab1 's\n!")[random() % (2 + static_cast<size_t>(round) % 7)];
      }
      EXPECT_EQ(Cuts(*pattern, text), CutsOneByOne(*pattern, text)) << expression;
    }
  }
}

TEST(CharacterPattern, LooksBehindWhereShortPiecesComeAgain) {
  EXPECT_EQ(Cuts(*Compiled("(?<=b)a"), "aaaabaaaabaaaa"), "aaaab[a]aaab[a]aaa");
  EXPECT_EQ(Cuts(*Compiled(R"(\Aa|b)"), "aabaabaab"), "[a]a[b]aa[b]aa[b]");
}

TEST(CharacterPattern, CutsPiecesThatComeAgainAsTheFirstTime) {
  std::mt19937 random(6);
  for (const char* expression :
       {R"(\p{N}{1,3})", "a+", "b$", "^a|bb", "[ab]{2,7}(?!1)", "(?<=a)b"}) {
    const auto pattern = Compiled(expression);
    std::string text;
    std::vector<TextPiece> pieces;
    std::string wanted;
    for (int i = 0; i < 500; ++i) {
      std::string piece;
      for (size_t size = 1 + random() % 8; piece.size() < size;) {
        piece += "ab1"[random() % 3];
      }
      const auto begin = static_cast<uint32_t>(text.size());
      text += piece;
      pieces.push_back({begin, static_cast<uint32_t>(text.size())});
      wanted += Cuts(*pattern, piece);
    }
    EXPECT_EQ(CutsOf(*pattern, text, pieces), wanted) << expression;
  }
}

// What cutting n characters takes, in attempts and bytes of windows.
CutWork WorkOf(const CharacterPattern& pattern, const std::string& text) {
  const TextPiece whole = {0, static_cast<uint32_t>(text.size())};
  CutWork work;
  const auto parts = pattern.Cut(text, absl::MakeConstSpan(&whole, 1), &work);
  EXPECT_TRUE(parts.ok()) << parts.status();
  return work;
}

// Work, not time: it must grow as the text does.
TEST(CharacterPattern, C9_WorkIsLinearInTheText) {
  constexpr size_t kCharacters = size_t{1} << 18;
  const auto pattern =
      Compiled(R"('s|[^\r\n\p{L}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
               R"(\s+(?!\S)|\s+)");
  for (const char* unit : {"a", " ", "a ", "7", "\n", " \n", "!", "!\n", "  x", "'s"}) {
    std::string text;
    while (text.size() < kCharacters) {
      text += unit;
    }
    const CutWork once = WorkOf(*pattern, text);
    const CutWork twice = WorkOf(*pattern, text + text);
    EXPECT_LE(once.attempts, kCharacters) << unit;
    EXPECT_LE(once.window_bytes, 260 * kCharacters) << unit;
    EXPECT_LE(twice.attempts, 2 * once.attempts + 2) << unit;
    EXPECT_LE(twice.window_bytes, 2.1 * static_cast<double>(once.window_bytes) + 1024) << unit;
  }
}

// Each of these would read to the end of the text for every character of it.
TEST(CharacterPattern, C9_StopsExpressionsThatReadAheadForNothing) {
  const std::string text(size_t{1} << 20, 'a');
  const TextPiece whole = {0, static_cast<uint32_t>(text.size())};
  for (const char* expression : {"a+b|a", "a+[bc]", "(?=a*c)a|a", "a(?=.*[xy])|a", "(?!a*$)a|a"}) {
    const auto parts = Compiled(expression)->Cut(text, absl::MakeConstSpan(&whole, 1));
    EXPECT_EQ(parts.status().code(), absl::StatusCode::kResourceExhausted) << expression;
    EXPECT_NE(parts.status().message().find("reads too far ahead"), absl::string_view::npos)
        << parts.status();
  }
}

TEST(CharacterPattern, FindsWhatLiesBehindLongGapsAndInLongRuns) {
  const std::string gap(1000, '.');
  const std::string run(1000, 'a');
  EXPECT_EQ(Cuts(*Compiled("a+b"), gap + run + "b" + gap), gap + "[" + run + "b]" + gap);
  EXPECT_EQ(Cuts(*Compiled("a+$"), gap + run + gap + run), gap + run + gap + "[" + run + "]");
  EXPECT_EQ(Cuts(*Compiled("a+(?!b)"), run + "b"), "[" + run.substr(1) + "]ab");
  EXPECT_EQ(Cuts(*Compiled("(?<=b)a+"), run + "b" + run), run + "b[" + run + "]");
}

}  // namespace
}  // namespace trireme::text
