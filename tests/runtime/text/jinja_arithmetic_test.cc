#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaArithmeticTest, DividesAndTakesRemaindersTowardsMinusInfinity) {
  EXPECT_EQ(Printed("7 // 2 ~ ' ' ~ -7 // 2 ~ ' ' ~ 7 // -2"), "3 -4 -4");
  EXPECT_EQ(Printed("7 % 3 ~ ' ' ~ -7 % 3 ~ ' ' ~ 7 % -3"), "1 2 -2");
  EXPECT_EQ(Printed("7.5 // 2 ~ ' ' ~ -7.5 % 2"), "3.0 0.5");
  EXPECT_EQ(Printed("6 / 3"), "2.0");
}

TEST(JinjaArithmeticTest, RefusesToDivideByZero) {
  EXPECT_THAT(Printed("1 / 0"), HasSubstr("division by zero"));
  EXPECT_THAT(Printed("1 % 0"), HasSubstr("division by zero"));
  EXPECT_THAT(Printed("1.5 // 0"), HasSubstr("division by zero"));
  EXPECT_THAT(Printed("0 ** -1"), HasSubstr("zero cannot be raised"));
}

TEST(JinjaArithmeticTest, CountsBeyondSixtyFourBitsAndStopsAtOneHundredAndTwentyEight) {
  EXPECT_EQ(Printed("9223372036854775807 + 1"), "9223372036854775808");
  EXPECT_EQ(Printed("2 ** 126"), "85070591730234615865843651857942052864");
  EXPECT_THAT(Printed("2 ** 127"), HasSubstr("128 bits"));
  EXPECT_THAT(Printed("9 ** 9 ** 9"), HasSubstr("128 bits"));
  EXPECT_EQ(Printed("(-1) ** 1000001"), "-1");
}

TEST(JinjaArithmeticTest, AddsAndRepeatsStringsAndLists) {
  EXPECT_EQ(Printed("'a' + 'b' ~ 'c'"), "abc");
  EXPECT_EQ(Printed("[1] + [2]"), "[1, 2]");
  EXPECT_EQ(Printed("'ab' * 2 ~ [0] * 2 ~ 'x' * -1"), "abab[0, 0]");
  EXPECT_THAT(Printed("'a' + 1"), HasSubstr("can only concatenate str (not \"int\")"));
  EXPECT_THAT(Printed("[1] + (2,)"), HasSubstr("unsupported operand types for +"));
}

TEST(JinjaArithmeticTest, RepeatsAnyNumberOfTimes) {
  std::string expected;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Printed("'ab' * " + std::to_string(i)), expected);
    expected += "ab";
  }
}

TEST(JinjaArithmeticTest, EscapesTheOtherSideOfMarkup) {
  EXPECT_EQ(Printed("'<a>' | safe + '<b>'"), "<a>&lt;b&gt;");
  EXPECT_EQ(Printed("'<b>' + ('<a>' | safe)"), "&lt;b&gt;<a>");
  EXPECT_EQ(Printed("'<a>' | safe ~ '<b>'"), "<a><b>");
}

TEST(JinjaArithmeticTest, CountsTrueAsOne) {
  EXPECT_EQ(Printed("true + 1"), "2");
  EXPECT_EQ(Printed("-true"), "-1");
}

TEST(JinjaArithmeticTest, NamesTheMissingVariable) {
  EXPECT_THAT(Printed("x + 1"), HasSubstr("'x' is undefined"));
  EXPECT_THAT(Printed("'a' + m.content", R"({"m": {}})"),
              HasSubstr("'dict object' has no attribute 'content'"));
}

}  // namespace
}  // namespace trireme::text::jinja
