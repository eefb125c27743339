#include "runtime/text/character_set.h"

#include "gtest/gtest.h"

namespace trireme::text {
namespace {

TEST(CharacterSet, JoinsRangesThatTouch) {
  CharacterSet set;
  set.Add('d', 'f');
  set.Add('a', 'b');
  set.Add('c', 'c');
  set.Add('z', 'y');
  ASSERT_EQ(set.ranges().size(), 1u);
  EXPECT_EQ(set.ranges()[0].first, U'a');
  EXPECT_EQ(set.ranges()[0].last, U'f');
}

TEST(CharacterSet, NegatesAndIntersects) {
  const CharacterSet set{{'b', 'd'}, {0x10fff0, kLastCodePoint}};
  const CharacterSet outside = set.Negated();
  EXPECT_TRUE(outside.Contains(0) && outside.Contains('e'));
  EXPECT_FALSE(outside.Contains('c') || outside.Contains(kLastCodePoint));
  const CharacterSet both = set.And(CharacterSet{{'a', 'b'}});
  ASSERT_EQ(both.ranges().size(), 1u);
  EXPECT_TRUE(both.Contains('b'));
}

TEST(CharacterSet, DigitsAndWordsAreThoseOfUnicode16) {
  EXPECT_TRUE(DecimalDigitCharacters().Contains(0x663));     // Arabic
  EXPECT_TRUE(DecimalDigitCharacters().Contains(0x10d40));   // Garay, Unicode 16
  EXPECT_FALSE(DecimalDigitCharacters().Contains(0xbd));     // one half
  EXPECT_FALSE(DecimalDigitCharacters().Contains(0x1d2c0));  // Kaktovik, Unicode 15
  for (const char32_t word : {U'a', U'_', char32_t{0x301}, char32_t{0x2160}, char32_t{0x24b6}}) {
    EXPECT_TRUE(WordCharacters().Contains(word)) << static_cast<uint32_t>(word);
  }
  EXPECT_FALSE(WordCharacters().Contains(U'-') || WordCharacters().Contains(0xbd));
}

TEST(CharacterSet, FindsPropertiesAndScripts) {
  EXPECT_TRUE(FindCharacterProperty("Lu")->Contains(U'A'));
  EXPECT_TRUE(FindCharacterProperty("Letter")->Contains(0x4f60));
  EXPECT_TRUE(FindCharacterProperty("Zs")->Contains(0xa0));
  const auto han = FindCharacterProperty("Han");
  ASSERT_TRUE(han.has_value());
  EXPECT_TRUE(han->Contains(0x4e00) && han->Contains(0x20000));
  EXPECT_FALSE(han->Contains(0x3042) || han->Contains(U'a'));
  EXPECT_FALSE(FindCharacterProperty("Nonsense").has_value());
  EXPECT_FALSE(FindCharacterProperty("a}|\\p{b").has_value());
}

TEST(CharacterSet, OtherCasesAreThoseOfTheReference) {
  const CharacterSet letters = CharacterSet{{'k', 'k'}, {0xe4, 0xe4}}.WithOtherCases();
  for (const char32_t letter : {U'k', U'K', char32_t{0x212a}, char32_t{0xe4}, char32_t{0xc4}}) {
    EXPECT_TRUE(letters.Contains(letter));
  }
}

}  // namespace
}  // namespace trireme::text
