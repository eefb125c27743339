#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaStringSearchTest, Splits) {
  EXPECT_EQ(Printed("'a b  c'.split() ~ 'a,b,,c'.split(',') ~ 'a,b,c'.split(',', 1)"),
            "['a', 'b', 'c']['a', 'b', '', 'c']['a', 'b,c']");
  EXPECT_EQ(
      Printed("'a-b-c'.rsplit('-', 1) ~ ' a b c '.split(none, 1) ~ ' a b c '.rsplit(none, 1)"),
      "['a-b', 'c']['a', 'b c '][' a b', 'c']");
  EXPECT_EQ(Printed("''.split() ~ ''.split(',') ~ 'abc'.partition('b') ~ 'abc'.rpartition('z')"),
            "[]['']('a', 'b', 'c')('', '', 'abc')");
  EXPECT_EQ(Rendered("{{ s.splitlines() }}{{ s.splitlines(true) }}", R"({"s": "a\n\nb\r\n"})"),
            "['a', '', 'b']['a\\n', '\\n', 'b\\r\\n']");
  EXPECT_THAT(Printed("'a'.split('')"), HasSubstr("empty separator"));
}

TEST(JinjaStringSearchTest, Finds) {
  EXPECT_EQ(
      Printed("'hello'.find('l') ~ 'hello'.find('z') ~ 'hello'.rfind('l') ~ 'hello'.count('l')"),
      "2-132");
  EXPECT_EQ(
      Printed("'\u00e9a'.find('a') ~ 'abcabc'.find('c', 3) ~ 'aaa'.count('aa') ~ 'abc'.count('')"),
      "1514");
  EXPECT_EQ(
      Printed("'hello'.startswith(('x', 'h')) ~ 'hello'.endswith('lo') ~ 'abc'.startswith('b', 1)"),
      "TrueTrueTrue");
  EXPECT_THAT(Printed("'a'.index('z')"), HasSubstr("substring not found"));
}

TEST(JinjaStringSearchTest, Replaces) {
  EXPECT_EQ(Printed("'aaa'.replace('a', 'b', 1) ~ 'abc'.replace('', '-') ~ 'abc'.replace('b', '')"),
            "baa-a-b-c-ac");
}

TEST(JinjaStringSearchTest, Joins) {
  EXPECT_EQ(Printed("', '.join(['a', 'b']) ~ 'a'.join('xyz')"), "a, bxayaz");
  EXPECT_THAT(Printed("','.join([1])"), HasSubstr("item 0 is of type int"));
}

TEST(JinjaStringSearchTest, KeepsWhoWroteWhat) {
  EXPECT_EQ(RenderedWithOrigins("{% for p in ('a,' ~ x ~ ',b').split(',') %}[{{ p }}]{% endfor %}",
                                R"({"x": "U"})"),
            "[a][<<U>>][b]");
  EXPECT_EQ(
      RenderedWithOrigins("{{ 'x-x'.replace('-', x) }}{{ '|'.join(['a', x]) }}", R"({"x": "U"})"),
      "x<<U>>xa|<<U>>");
}

}  // namespace
}  // namespace trireme::text::jinja
