#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaTextFiltersTest, TrimsAndChangesCase) {
  EXPECT_EQ(Printed("(' a b ' | trim) ~ ('xax' | trim('x')) ~ ('aBc' | upper) ~ ('hELLO' | "
                    "capitalize) ~ ('hello wORLD-foo' | title)"),
            "a baABCHelloHello World-Foo");
  EXPECT_EQ(Printed("(5 | trim) ~ (none | trim) ~ ([1] | upper) ~ (x | trim)"), "5None[1]");
}

TEST(JinjaTextFiltersTest, Indents) {
  EXPECT_EQ(Rendered("{{ s | indent(2) }}|{{ s | indent(2, true) }}|{{ s | indent('> ', "
                     "first=true, blank=true) }}",
                     R"({"s": "a\nb\n\nc"})"),
            "a\n  b\n\n  c|  a\n  b\n\n  c|> a\n> b\n> \n> c");
  EXPECT_THAT(Printed("'a' | indent(10 ** 12)"), HasSubstr("limit of"));
  EXPECT_THAT(Printed("5 | indent"), HasSubstr("indent needs a string, not int"));
}

TEST(JinjaTextFiltersTest, Escapes) {
  EXPECT_EQ(Printed("'<b> & \"' | e"), "&lt;b&gt; &amp; &#34;");
  EXPECT_EQ(Printed("'<a>' | e | e"), "&lt;a&gt;");
  EXPECT_EQ(Printed("'<b>x</b>  <!-- c -->y' | striptags"), "x y");
}

TEST(JinjaTextFiltersTest, ShortensAndCounts) {
  EXPECT_EQ(Printed("('abcdef' | truncate(5)) ~ ('abc def ghi' | truncate(8, leeway=0)) ~ ('a b c' "
                    "| wordcount)"),
            "abcdefabc...3");
  EXPECT_EQ(
      Printed("('ab' | center(6)) ~ '|' ~ ('a b/c' | urlencode) ~ ({'a b': '/'} | urlencode)"),
      "  ab  |a%20b/ca+b=%2F");
  EXPECT_EQ(
      Printed("(1 | filesizeformat) ~ (1000 | filesizeformat) ~ (1024 | filesizeformat(true))"),
      "1 Byte1.0 kB1.0 KiB");
}

TEST(JinjaTextFiltersTest, Replaces) {
  EXPECT_EQ(
      Printed(
          "('a-b-a' | replace('a', 'X')) ~ ('aaa' | replace('a', 'b', 2)) ~ (505 | replace(5, 6))"),
      "X-b-Xbba606");
}

}  // namespace
}  // namespace trireme::text::jinja
