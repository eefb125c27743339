#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaOperandParserTest, ReadsLiterals) {
  EXPECT_EQ(Printed("{'a': 1, 'b': [1, 2], 3: none}"), "{'a': 1, 'b': [1, 2], 3: None}");
  EXPECT_EQ(Printed("[1, 'two', 3.0,]"), "[1, 'two', 3.0]");
  EXPECT_EQ(Rendered("{{ (1,) }}{{ () }}{{ (1) }}{{ 1, 2 }}"), "(1,)()1(1, 2)");
  EXPECT_EQ(Printed("'ab' \"cd\""), "abcd");
  EXPECT_EQ(Printed("1_000 ~ 0x1f ~ 0b11 ~ 1e3"), "10003131000.0");
}

TEST(JinjaOperandParserTest, ReadsCallsWithNamesAndStars) {
  EXPECT_EQ(Printed("dict(a=1, **{'b': 2})"), "{'a': 1, 'b': 2}");
  EXPECT_EQ(Printed("range(*[1, 4]) | list"), "[1, 2, 3]");
  EXPECT_THAT(Printed("dict(a=1, 2)"), HasSubstr("an argument without a name follows"));
}

TEST(JinjaOperandParserTest, SaysWhatIsMissing) {
  EXPECT_THAT(Printed(""), HasSubstr("expected an expression"));
  EXPECT_THAT(Printed("a."), HasSubstr("expected a name or a number after '.'"));
  EXPECT_THAT(Printed("a[]"), HasSubstr("expected an index"));
  EXPECT_THAT(Printed("a[1:2:3:4]"), HasSubstr("a slice has at most"));
  EXPECT_THAT(Printed("99999999999999999999999999999999999999999999"),
              HasSubstr("does not fit in 128 bits"));
}

}  // namespace
}  // namespace trireme::text::jinja
