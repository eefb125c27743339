#include <string>

#include "gtest/gtest.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

TEST(JinjaUnicodeTest, DecodesCharactersAndInvalidBytes) {
  EXPECT_EQ(DecodeAt("\u00e9", 0).code_point, char32_t{0xE9});
  EXPECT_EQ(DecodeAt("\U0001F600", 0).bytes, 4U);
  EXPECT_EQ(DecodeAt("\xff", 0).code_point, char32_t{0xFFFD});
  EXPECT_EQ(DecodeAt("\xed\xa0\x80", 0).bytes, 1U);  // a surrogate
  EXPECT_EQ(DecodeAt("\xc0\x80", 0).bytes, 1U);      // overlong
  EXPECT_EQ(DecodeAt("\xe4\xbd", 0).bytes, 1U);      // cut off
  EXPECT_TRUE(IsValidUtf8("a\u00e9\u4f60\U0001F600"));
  EXPECT_FALSE(IsValidUtf8("a\xff"));
}

TEST(JinjaUnicodeTest, EncodesWhatItDecodes) {
  for (const char32_t c : {U'a', U'\u00e9', U'\u4f60', U'\U0001F600', U'\U0010FFFF'}) {
    std::string text;
    AppendUtf8(c, text);
    EXPECT_EQ(DecodeAt(text, 0).code_point, c);
    EXPECT_EQ(DecodeAt(text, 0).bytes, text.size());
  }
}

TEST(JinjaUnicodeTest, CountsCharacters) {
  EXPECT_EQ(CountCharacters("a\u00e9\u4f60"), 3);
  EXPECT_EQ(OffsetOfCharacter("a\u00e9\u4f60", 2), 3U);
  EXPECT_EQ(OffsetOfCharacter("ab", 9), 2U);
}

TEST(JinjaUnicodeTest, KnowsPythonsWhiteSpace) {
  for (const char32_t c : {U' ', U'\t', U'\u001c', U'\u00a0', U'\u2028', U'\u3000'}) {
    EXPECT_TRUE(IsSpace(c));
  }
  EXPECT_FALSE(IsSpace(U'\u200b'));
  EXPECT_FALSE(IsSpace(U'a'));
}

TEST(JinjaUnicodeTest, StripsWholeCharacters) {
  const StripRange range = StripSpace("\u3000a\u00e9 ", true, true);
  EXPECT_EQ(range.begin, 3U);
  EXPECT_EQ(range.end, 6U);
  const StripRange characters = StripCharacters("\u00e9x\u00e9", "\u00e9", true, true);
  EXPECT_EQ(characters.begin, 2U);
  EXPECT_EQ(characters.end, 3U);
}

TEST(JinjaUnicodeTest, ChangesCaseToSeveralCharacters) {
  std::string out;
  AppendInCase(U'\u00df', LetterCase::kUpper, out);
  AppendInCase(U'\ufb01', LetterCase::kTitle, out);
  AppendInCase(U'\u0130', LetterCase::kLower, out);
  AppendInCase(U'\u00df', LetterCase::kFolded, out);
  EXPECT_EQ(out, "SSFii\u0307ss");
}

}  // namespace
}  // namespace trireme::text::jinja
