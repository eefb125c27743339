#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaTokenCursorTest, QuotesTheTokenThatStandsInTheWay) {
  EXPECT_EQ(
      Printed("a b"),
      "ERROR: chat template, line 1, column 6: expected the end of the expression, found 'b'");
  EXPECT_THAT(Rendered("{% if true %}x"), HasSubstr("'if' has no end"));
  EXPECT_THAT(Rendered("{% set x = %}"),
              HasSubstr("expected an expression, found the end of the tag"));
}

TEST(JinjaTokenCursorTest, StopsAtNestingThatIsTooDeep) {
  const std::string deep = std::string(100, '(') + "1" + std::string(100, ')');
  EXPECT_THAT(Printed(deep), HasSubstr("nested deeper than the limit of 64"));
  const std::string usual = std::string(30, '(') + "1" + std::string(30, ')');
  EXPECT_EQ(Printed(usual), "1");
}

TEST(JinjaTokenCursorTest, StopsAtTreesThatAreTooLarge) {
  std::string large = "{{ [";
  for (int i = 0; i < 30001; ++i) {
    large += "1,";
  }
  EXPECT_THAT(Rendered(large + "] }}"), HasSubstr("more syntax nodes than the limit of 30000"));
}

}  // namespace
}  // namespace trireme::text::jinja
