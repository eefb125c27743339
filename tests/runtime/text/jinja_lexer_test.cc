#include "runtime/text/jinja_lexer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaLexerTest, StripsOneLineEndAfterABlockTagAndIndentionBeforeIt) {
  EXPECT_EQ(Rendered("a\n{% if true %}\nb\n{% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(Rendered("a\n  {% if true %}  \n  b\n  {% endif %}\nc"), "a\n  \n  b\nc");
  EXPECT_EQ(Rendered("  {{ 1 }}\n  {{ 2 }}\n"), "  1\n  2");
  EXPECT_EQ(Rendered("x {% set a = 1 %} \n y"), "x  \n y");
}

TEST(JinjaLexerTest, StripsWhereMinusStands) {
  EXPECT_EQ(Rendered("a {%- if true -%} b {%- endif -%} c"), "abc");
  EXPECT_EQ(Rendered("a\n {{- 1 -}} \n b"), "a1b");
  EXPECT_EQ(Rendered("a{# c #}b{#- d -#} c"), "abc");
}

TEST(JinjaLexerTest, KeepsWherePlusStands) {
  EXPECT_EQ(Rendered("a\n    {%+ if true %}b{% endif +%}\nc"), "a\n    b\nc");
  EXPECT_EQ(Rendered("{%+ if true %} a{%+ endif %} b"), " a b");
}

TEST(JinjaLexerTest, LeavesRawBlocksAlone) {
  EXPECT_EQ(Rendered("{% raw %}{{ x }} {% if %}{% endraw %}|{{ '{{' }}"), "{{ x }} {% if %}|{{");
  EXPECT_EQ(Rendered("a  {%- raw %} b {% endraw -%}  c"), "a b c");
  EXPECT_THAT(Rendered("{% raw %}x"), HasSubstr("raw block has no end"));
}

TEST(JinjaLexerTest, NormalizesLineEnds) {
  EXPECT_EQ(NormalizeSource("a\r\nb\rc\n\n"), "a\nb\nc\n");
  EXPECT_EQ(Rendered("one\n\n"), "one\n");
}

TEST(JinjaLexerTest, ResolvesEscapes) {
  EXPECT_EQ(Printed(R"('a\n\t\\\'\u00e9\x41\101\d')"), "a\n\t\\'\u00e9AA\\d");
  EXPECT_THAT(Printed(R"('\u12')"), HasSubstr("4 hexadecimal digits"));
  EXPECT_THAT(Printed(R"('\ud800')"), HasSubstr("no Unicode character"));
}

TEST(JinjaLexerTest, TellsTheEndOfATagFromBrackets) {
  EXPECT_EQ(Rendered("{{ {'a': {'b': 1}}['a']['b'] }}{{ '}}' }}"), "1}}");
  EXPECT_THAT(Rendered("{{ [1, 2 }}"), HasSubstr("found '}' where ']' is needed"));
  EXPECT_THAT(Rendered("{{ 1) }}"), HasSubstr("without its opening bracket"));
}

TEST(JinjaLexerTest, SaysWhatHasNoEnd) {
  EXPECT_EQ(Rendered("a\n\u00e9{{ x"),
            "ERROR: chat template, line 2, column 2: this tag has no end: missing '}}'");
  EXPECT_THAT(Rendered("{{ 'abc }}"), HasSubstr("string has no end"));
  EXPECT_THAT(Rendered("{# open"), HasSubstr("comment has no end"));
  EXPECT_THAT(Rendered("{{ a $ b }}"), HasSubstr("unexpected character '$'"));
}

TEST(JinjaLexerTest, StopsAtTooManyTokens) {
  std::string many = "{{";
  for (size_t i = 0; i <= kTokensMax; ++i) {
    many += "1 ";
  }
  EXPECT_EQ(Tokenize(many).status().code(), absl::StatusCode::kResourceExhausted);
  std::string texts;
  for (size_t i = 0; i <= kTokensMax + 1; ++i) {
    texts += "{##}x";
  }
  EXPECT_EQ(Tokenize(texts).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace trireme::text::jinja
