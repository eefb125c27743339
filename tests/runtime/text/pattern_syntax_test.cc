#include "runtime/text/pattern_syntax.h"

#include "gtest/gtest.h"

namespace trireme::text {
namespace {

std::string Shape(absl::string_view pattern) {
  const auto syntax = ParsePattern(pattern);
  EXPECT_TRUE(syntax.ok()) << syntax.status();
  std::string shape;
  for (const PatternItem& item : syntax->items) {
    shape += item.set < 0 ? item.operators : "S";
  }
  return shape;
}

CharacterSet OnlySet(absl::string_view pattern) {
  const auto syntax = ParsePattern(pattern);
  EXPECT_TRUE(syntax.ok()) << syntax.status();
  EXPECT_EQ(syntax->sets.size(), 1u);
  return syntax->sets.empty() ? CharacterSet() : syntax->sets[0];
}

TEST(PatternSyntax, KeepsOperatorsAndNumbersCharacters) {
  EXPECT_EQ(Shape(R"((?i:'s|'t)|a+b*?c{2,3}(?!\S))"), "(?:SS|SS)|S+S*?S{2,3}(?!S)");
  EXPECT_EQ(Shape("(a)"), "(?:S)");
  EXPECT_EQ(Shape("a{2"), "SSS");
  EXPECT_EQ(Shape("a{,3}"), "S{0,3}");
}

TEST(PatternSyntax, RepeatsARepetitionWhereCountsAreFollowedByPlus) {
  EXPECT_EQ(Shape(R"(\p{N}{1,3}+x)"), "(?:S{1,3})+S");
  EXPECT_EQ(Shape("(ab)++"), "(?:SS)++");
}

TEST(PatternSyntax, ReadsClasses) {
  const CharacterSet set = OnlySet(R"([^\r\na-c[x]\-])");
  for (const char32_t outside : {U'\r', U'\n', U'a', U'b', U'c', U'x', U'-'}) {
    EXPECT_FALSE(set.Contains(outside));
  }
  EXPECT_TRUE(set.Contains(U'd'));
  EXPECT_TRUE(set.Contains(0x10ffff));
  const CharacterSet both = OnlySet("[a-z&&[^b-y]]");
  EXPECT_TRUE(both.Contains(U'a') && both.Contains(U'z'));
  EXPECT_FALSE(both.Contains(U'b') || both.Contains(U'A'));
  EXPECT_TRUE(OnlySet("[]a]").Contains(U']'));
  EXPECT_TRUE(OnlySet(R"(\x{4f60})").Contains(0x4f60));
}

TEST(PatternSyntax, CaselessLettersBringTheirOtherCases) {
  const CharacterSet s = OnlySet("(?i)s");
  EXPECT_TRUE(s.Contains(U's') && s.Contains(U'S') && s.Contains(0x17f));
  EXPECT_FALSE(OnlySet("s").Contains(U'S'));
}

TEST(PatternSyntax, RefusesWithThePlace) {
  for (const auto& [pattern, words] : std::vector<std::pair<std::string, std::string>>{
           {"a(b", "a group is not closed"},
           {"a)b", "byte 1"},
           {"[a", "a class is not closed"},
           {"*a", "a quantifier without anything to repeat"},
           {R"((a)\1)", "unknown escape"},
           {"(?<n>a)", "unknown kind of group"},
           {R"(\p{Nonsense})", "unknown property \"Nonsense\""},
           {"a{3,2}", "counts in the wrong order"},
           {"[z-a]", "a range without a last character"},
           {std::string(kPatternBytesMax + 1, 'a'), "at most 16384"},
           {std::string(100, '('), "nested deeper than 64"}}) {
    const auto syntax = ParsePattern(pattern);
    EXPECT_NE(syntax.status().message().find(words), std::string::npos)
        << pattern.substr(0, 40) << ": " << syntax.status();
  }
}

}  // namespace
}  // namespace trireme::text
