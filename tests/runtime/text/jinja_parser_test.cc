#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaParserTest, RefusesUnknownAndMisplacedTags) {
  EXPECT_EQ(Rendered("{% endif %}"), "ERROR: chat template, line 1, column 4: unknown tag 'endif'");
  EXPECT_THAT(Rendered("{% include 'x' %}"), HasSubstr("'include' is not supported"));
  EXPECT_THAT(Rendered("{% autoescape true %}{% endautoescape %}"), HasSubstr("autoescape"));
}

TEST(JinjaParserTest, RefusesTargetsThatCannotBeAssigned) {
  EXPECT_THAT(Rendered("{% set 1 = 2 %}"), HasSubstr("expected the name of a variable"));
  EXPECT_THAT(Rendered("{% set true = 2 %}"), HasSubstr("'true' cannot be assigned to"));
  EXPECT_THAT(Rendered("{% macro f(a=1, b) %}{% endmacro %}"),
              HasSubstr("without a default value follows"));
}

TEST(JinjaParserTest, RefusesBlocksWithoutAnEnd) {
  EXPECT_THAT(Rendered("x\n{% for a in b %}"), HasSubstr("line 2, column 4: 'for' has no end"));
  EXPECT_THAT(Rendered("{% macro f() %}"), HasSubstr("without 'endmacro'"));
}

TEST(JinjaParserTest, RefusesWhatIsTooLargeOrNotText) {
  EXPECT_THAT(Rendered(std::string((1 << 20) + 1, 'x')), HasSubstr("the limit is 1048576"));
  EXPECT_THAT(Rendered("a\xff"), HasSubstr("not valid UTF-8"));
}

TEST(JinjaParserTest, TakesTargetsOfSeveralNames) {
  EXPECT_EQ(Rendered("{% set a, b = 1, 2 %}{{ b }}{{ a }}"), "21");
  EXPECT_EQ(Rendered("{% set (a, b) = [3, 4] %}{{ a }}{{ b }}"), "34");
}

}  // namespace
}  // namespace trireme::text::jinja
