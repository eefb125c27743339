#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaStringMethodsTest, ChangesCaseByUnicode) {
  EXPECT_EQ(Printed("'a\u00df'.upper() ~ 'AB'.lower() ~ 'hELLO'.capitalize() ~ 'aB'.swapcase()"),
            "ASSabHelloAb");
  EXPECT_EQ(Printed("\"they're ok\".title()"), "They'Re Ok");
  EXPECT_EQ(Printed("'\u0391\u03a3'.lower()"), "\u03b1\u03c2");
  EXPECT_EQ(Printed("'\u01c6'.title() ~ 'Stra\u00dfe'.casefold()"), "\u01c5strasse");
}

TEST(JinjaStringMethodsTest, StripsWhiteSpaceOrCharacters) {
  EXPECT_EQ(Printed("'\u00a0 a \u3000'.strip() ~ '|'"), "a|");
  EXPECT_EQ(Printed("'xxaxx'.strip('x') ~ 'abcba'.lstrip('ab') ~ 'a\\n\\n'.rstrip('\\n')"),
            "acbaa");
  EXPECT_EQ(Printed("'\u200bx'.strip() | length"), "2");
  EXPECT_EQ(Printed("'ab'.removeprefix('a') ~ 'ab'.removesuffix('b') ~ 'ab'.removeprefix('b')"),
            "baab");
}

TEST(JinjaStringMethodsTest, Pads) {
  EXPECT_EQ(Printed("'ab'.center(5) ~ '|' ~ 'ab'.center(6) ~ '|' ~ 'abc'.center(6) ~ '|'"),
            "  ab |  ab  | abc  |");
  EXPECT_EQ(Printed("'ab'.ljust(4, '*') ~ 'ab'.rjust(4) ~ '-42'.zfill(5)"), "ab**  ab-0042");
  EXPECT_EQ(Printed("'a\tb'.expandtabs(4)"), "a   b");
  EXPECT_THAT(Printed("'a'.center(10 ** 12)"), HasSubstr("limit of"));
}

TEST(JinjaStringMethodsTest, AnswersQuestionsAboutCharacters) {
  EXPECT_EQ(
      Printed("'a1'.isalnum() ~ 'a'.isalpha() ~ '5'.isdigit() ~ ' '.isspace() ~ ''.isspace()"),
      "TrueTrueTrueTrueFalse");
  EXPECT_EQ(Printed("'AB'.isupper() ~ 'ab1'.islower() ~ '1'.islower() ~ 'Ab Cd'.istitle()"),
            "TrueTrueFalseTrue");
}

TEST(JinjaStringMethodsTest, KeepsMarkup) {
  EXPECT_EQ(Printed("('<a>' | safe).upper() + '<'"), "<A>&lt;");
}

}  // namespace
}  // namespace trireme::text::jinja
