#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(JinjaExpressionParserTest, BindsTildeTighterThanPlusAndPowerLooserThanMinus) {
  EXPECT_THAT(Printed("'n=' ~ 1 + 2"), StartsWith("ERROR"));
  EXPECT_EQ(Printed("'a' ~ 2 * 3"), "a6");
  EXPECT_EQ(Printed("-2 ** 2"), "4");
  EXPECT_EQ(Printed("2 ** 3 ** 2"), "64");
  EXPECT_EQ(Printed("10 - 4 - 3"), "3");
}

TEST(JinjaExpressionParserTest, AppliesFiltersBeforeOperators) {
  EXPECT_EQ(Printed("2 + 3 | string | length"), "3");
  EXPECT_EQ(Printed("'a' ~ 'b' | upper"), "aB");
  EXPECT_EQ(Printed("-1 | abs"), "1");
}

TEST(JinjaExpressionParserTest, ReadsNotInAndIsNot) {
  EXPECT_EQ(Printed("1 not in [2] and 3 is not none and not 1 == 2"), "True");
  EXPECT_EQ(Printed("not 'a' in 'abc'"), "False");
}

TEST(JinjaExpressionParserTest, ReadsTestsWithAnArgumentWithoutBrackets) {
  EXPECT_EQ(Printed("6 is divisibleby 3 and 1 is eq 1"), "True");
  EXPECT_THAT(Printed("1 is odd is even"), HasSubstr("cannot be chained"));
}

TEST(JinjaExpressionParserTest, LeavesTheLastBranchOfAConditionOut) {
  EXPECT_EQ(Printed("'a' if false"), "");
  EXPECT_EQ(Printed("'a' if false else 'b' if false else 'c'"), "c");
}

TEST(JinjaExpressionParserTest, StopsAtChainsThatAreTooLong) {
  std::string chain = "x";
  for (int i = 0; i < 1000; ++i) {
    chain += " | trim";
  }
  EXPECT_THAT(Printed(chain), HasSubstr("longer chain than the limit of 160"));
  std::string sum = "1";
  for (int i = 0; i < 100; ++i) {
    sum += " + 1";
  }
  EXPECT_EQ(Printed(sum), "101");
}

}  // namespace
}  // namespace trireme::text::jinja
