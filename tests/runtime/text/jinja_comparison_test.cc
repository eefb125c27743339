#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaComparisonTest, ComparesNumbersAcrossTypes) {
  EXPECT_EQ(Printed("1 == 1.0 == true"), "True");
  EXPECT_EQ(Printed("'1' == 1"), "False");
  EXPECT_EQ(Printed("(1 < 2 < 3) ~ (1 < 3 < 2)"), "TrueFalse");
}

TEST(JinjaComparisonTest, ComparesContainersByContent) {
  EXPECT_EQ(Printed("[1, [2]] == [1.0, [2]]"), "True");
  EXPECT_EQ(Printed("{'a': 1, 'b': 2} == {'b': 2, 'a': 1}"), "True");
  EXPECT_EQ(Printed("(1, 2) < (1, 3)"), "True");
  EXPECT_EQ(Printed("[1] == (1,)"), "False");
}

TEST(JinjaComparisonTest, RefusesToOrderDifferentTypes) {
  EXPECT_THAT(Printed("1 < 'a'"), HasSubstr("'<' is not defined between 'int' and 'str'"));
  EXPECT_THAT(Printed("none >= 1"), HasSubstr("'>=' is not defined between 'NoneType' and 'int'"));
}

TEST(JinjaComparisonTest, FindsMembers) {
  EXPECT_EQ(Printed("'el' in 'hello' and 2 in [1, 2] and 'a' in {'a': 1}"), "True");
  EXPECT_EQ(Printed("(4 in range(0, 10, 2)) ~ (5 in range(0, 10, 2))"), "TrueFalse");
  EXPECT_EQ(Printed("5 not in range(0, 10, 2)"), "True");
  EXPECT_EQ(Printed("'a' in missing"), "False");
  EXPECT_THAT(Printed("1 in 'abc'"), HasSubstr("needs a string on its left, not int"));
  EXPECT_THAT(Printed("1 in 5"), HasSubstr("'int' is not iterable"));
}

}  // namespace
}  // namespace trireme::text::jinja
