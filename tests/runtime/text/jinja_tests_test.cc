#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaTestsTest, TellsTypesApart) {
  EXPECT_EQ(Printed("(1 is number) ~ (true is number) ~ (true is integer) ~ (1.5 is float) ~ ('a' "
                    "is string)"),
            "TrueTrueFalseTrueTrue");
  EXPECT_EQ(Printed("({} is mapping) ~ ([] is sequence) ~ ('a' is sequence) ~ (5 is iterable) ~ "
                    "(true is boolean)"),
            "TrueTrueTrueFalseTrue");
  EXPECT_EQ(
      Printed("(none is none) ~ (x is none) ~ (x is iterable) ~ (x is sequence) ~ (x is callable)"),
      "TrueFalseTrueTrueTrue");
}

TEST(JinjaTestsTest, ComparesAndDivides) {
  EXPECT_EQ(Printed("3 is odd and 4 is even and 6 is divisibleby(3) and 2 is gt 1 and 1 is in [1] "
                    "and 1 is ne 2"),
            "True");
  EXPECT_EQ(Printed("('a' is lower) ~ ('A' is upper) ~ (1 is sameas 1) ~ (1 is sameas true)"),
            "TrueTrueTrueFalse");
}

TEST(JinjaTestsTest, KnowsNames) {
  EXPECT_EQ(Printed("('trim' is filter) ~ ('nope' is filter) ~ ('odd' is test)"), "TrueFalseTrue");
  EXPECT_THAT(Printed("1 is nosuch"), HasSubstr("there is no test named 'nosuch'"));
}

}  // namespace
}  // namespace trireme::text::jinja
