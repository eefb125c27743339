#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaInterpreterTest, DecidesWithoutLookingFurther) {
  EXPECT_EQ(Printed("0 and x.y.z"), "0");
  EXPECT_EQ(Printed("1 or x.y.z"), "1");
  EXPECT_EQ(Printed("none or 0"), "0");
}

TEST(JinjaInterpreterTest, SaysWhereItFailed) {
  EXPECT_EQ(Rendered("a\n b {{ 'x' + y.z }}"),
            "ERROR: chat template, line 2, column 15: 'y' is undefined");
  EXPECT_THAT(Printed("x.strip()"), HasSubstr("'x' is undefined"));
  EXPECT_THAT(Printed("'abc'.nomethod()"), HasSubstr("'str object' has no attribute 'nomethod'"));
  EXPECT_THAT(Printed("5()"), HasSubstr("'int' cannot be called"));
}

TEST(JinjaInterpreterTest, PrintsNothingForUndefinedValues) {
  EXPECT_EQ(Rendered("[{{ x }}]"), "[]");
  EXPECT_EQ(Printed("x is defined"), "False");
  EXPECT_EQ(Printed("'a' ~ x ~ 'b'"), "ab");
}

TEST(JinjaInterpreterTest, HidesWhatChangesOrReflects) {
  EXPECT_THAT(Rendered("{% set l = [] %}{{ l.append(1) }}"),
              HasSubstr("'append' of 'list' object is unsafe"));
  EXPECT_THAT(Printed("''.__class__.__mro__"), HasSubstr("'__class__' of 'str' object is unsafe"));
  EXPECT_EQ(Printed("'a'.__class__"), "");
}

TEST(JinjaInterpreterTest, StopsRecursionWithoutEnd) {
  EXPECT_THAT(Rendered("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
              HasSubstr("deeper than the limit of 200"));
  EXPECT_THAT(Rendered("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
              HasSubstr("deeper than the limit of 200"));
}

TEST(JinjaInterpreterTest, KeepsWhoWroteWhat) {
  const std::string variables = R"({"x": "U"})";
  EXPECT_EQ(RenderedWithOrigins("a{{ x }}b{{ 'c' + x + 'd' }}{{ 1 }}", variables),
            "a<<U>>bc<<U>>d1");
  EXPECT_EQ(RenderedWithOrigins("{{ ('[' ~ x ~ ']')[1:] }}{{ (' ' ~ x ~ ' ') | trim }}", variables),
            "<<U>>]<<U>>");
  EXPECT_EQ(RenderedWithOrigins("{{ 'abc'.replace('b', x) | upper }}", variables), "A<<U>>C");
  EXPECT_EQ(RenderedWithOrigins("{% set y %}<{{ x }}>{% endset %}{{ y }}", variables), "<<<U>>>");
  EXPECT_EQ(RenderedWithOrigins("{% macro f(a) %}({{ a }}){% endmacro %}{{ f(x) }}", variables),
            "(<<U>>)");
  EXPECT_EQ(RenderedWithOrigins("t{{ {'a': 'b'} | tojson }}", variables), R"(t<<{"a": "b"}>>)");
}

}  // namespace
}  // namespace trireme::text::jinja
