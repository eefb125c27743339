#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaStatementsTest, LoopsWithItsOwnVariables) {
  EXPECT_EQ(Rendered("{% for c in 'ab' %}{{ loop.index }}/{{ loop.length }}{{ c }}{{ loop.last "
                     "}};{% endfor %}"),
            "1/2aFalse;2/2bTrue;");
  EXPECT_EQ(Rendered("{% for i in [1, 2, 3] if i != 2 %}{{ i }}{% else %}none{% endfor %}"), "13");
  EXPECT_EQ(Rendered("{% for i in [] %}{{ i }}{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(Rendered("{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}"),
            "123");
  EXPECT_THAT(Rendered("{% for a, b in [[1, 2, 3]] %}{% endfor %}"),
              HasSubstr("cannot give 3 values to 2 variables"));
}

TEST(JinjaStatementsTest, BreaksAndContinues) {
  EXPECT_EQ(Rendered("{% for x in [1, 2, 3, 4] %}{% if x == 2 %}{% continue %}{% endif %}"
                     "{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}"),
            "13");
  EXPECT_THAT(Rendered("{% break %}"), HasSubstr("outside of a loop"));
}

TEST(JinjaStatementsTest, KeepsVariablesInTheirScope) {
  EXPECT_EQ(
      Rendered(
          "{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }};{% endfor %}{{ x }}"),
      "2;3;1");
  EXPECT_EQ(Rendered("{% if true %}{% set x = 5 %}{% endif %}{{ x }}"), "5");
  EXPECT_EQ(Rendered("{% with a = 1 %}{{ a }}{% endwith %}{{ a is defined }}"), "1False");
  EXPECT_EQ(Rendered("{% set n = namespace(s='') %}{% for i in [1, 2] %}{% set n.s = n.s ~ i %}{% "
                     "endfor %}{{ n.s }}"),
            "12");
  EXPECT_THAT(Rendered("{% set x.y = 1 %}", R"({"x": {}})"),
              HasSubstr("only a namespace() can be changed"));
}

TEST(JinjaStatementsTest, CallsMacros) {
  EXPECT_EQ(Rendered("{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(1) }}|{{ f(b=1, a=0) "
                     "}}|{{ f() }}"),
            "1-2|0-1|-2");
  EXPECT_EQ(
      Rendered("{% macro f(a) %}{{ a }}{{ kwargs }}{{ varargs }}{% endmacro %}{{ f(1, 2, k=3) }}"),
      "1{'k': 3}(2,)");
  EXPECT_EQ(
      Rendered(
          "{% macro f() %}<{{ caller(3) }}>{% endmacro %}{% call(x) f() %}{{ x }}{% endcall %}"),
      "<3>");
  EXPECT_THAT(Rendered("{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}"),
              HasSubstr("takes at most 1 arguments, got 2"));
  EXPECT_THAT(Rendered("{% macro f(a) %}{% endmacro %}{{ f(b=2) }}"),
              HasSubstr("has no parameter 'b'"));
}

TEST(JinjaStatementsTest, LetsMacrosSeeTheScopeTheyWereWrittenIn) {
  EXPECT_EQ(Rendered("{% set x = 1 %}{% macro f() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ f() }}"),
            "2");
  EXPECT_EQ(
      Rendered("{% set n = namespace() %}{% for i in [1, 2] %}{% macro f() %}{{ i }}{% endmacro %}"
               "{% if loop.first %}{% set n.f = f %}{% endif %}{% endfor %}{{ n.f() }}"),
      "1");
}

TEST(JinjaStatementsTest, RecursesThroughLoops) {
  EXPECT_EQ(
      Rendered(
          "{% for n in t recursive %}{{ n.v }}{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}",
          R"({"t": [{"v": 1, "c": [{"v": 2}, {"v": 3, "c": [{"v": 4}]}]}]})"),
      "1(23(4))");
}

TEST(JinjaStatementsTest, FiltersBlocks) {
  EXPECT_EQ(Rendered("{% filter upper %}abc{{ 'd' }}{% endfilter %}"), "ABCD");
  EXPECT_EQ(Rendered("{% set x | trim | upper %} ab {% endset %}[{{ x }}]"), "[AB]");
  EXPECT_EQ(Rendered("{% generation %}a{% endgeneration %}{% block b %}c{% endblock %}"), "ac");
}

TEST(JinjaStatementsTest, StopsEndlessWorkAndEndlessOutput) {
  EXPECT_THAT(
      Rendered("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"),
      HasSubstr("limit of 1500000 steps"));
  EXPECT_THAT(Rendered("{% set x = 'x' * 9000000 %}{{ x }}{{ x }}"),
              HasSubstr("limit of 16777216 bytes"));
}

}  // namespace
}  // namespace trireme::text::jinja
