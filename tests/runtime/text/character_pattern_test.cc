#include "runtime/text/character_pattern.h"

#include "gtest/gtest.h"

namespace trireme::text {
namespace {

std::string Cuts(const CharacterPattern& pattern, absl::string_view text) {
  const TextPiece whole = {0, static_cast<uint32_t>(text.size())};
  const auto parts = pattern.Cut(text, absl::MakeConstSpan(&whole, 1));
  EXPECT_TRUE(parts.ok()) << parts.status();
  std::string shown;
  for (const PatternPart& part : *parts) {
    const std::string bytes(text.substr(part.piece.begin, part.piece.end - part.piece.begin));
    shown += part.is_match ? "[" + bytes + "]" : bytes;
  }
  return shown;
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

}  // namespace
}  // namespace trireme::text
