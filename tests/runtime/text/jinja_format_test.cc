#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaFormatTest, FormatsWithPercent) {
  EXPECT_EQ(Printed("'%s-%d' % ('a', 3)"), "a-3");
  EXPECT_EQ(Printed("'%5d|%-5d|%05d|%+d' % (1, 2, 3, 4)"), "    1|2    |00003|+4");
  EXPECT_EQ(Printed("'%.2f %x %%' % (1.5, 255)"), "1.50 ff %");
  EXPECT_EQ(Printed("'%(a)s' % {'a': 1}"), "1");
  EXPECT_EQ(Printed("'%05.1f|%x' | format(3.14159, 255)"), "003.1|ff");
}

TEST(JinjaFormatTest, FormatsWithBraces) {
  EXPECT_EQ(Printed("'{}-{}'.format(1, 'b')"), "1-b");
  EXPECT_EQ(Printed("'{0}{1}{0} {a}'.format('x', 'y', a=3)"), "xyx 3");
  EXPECT_EQ(Printed("'{:>3}|{:*^5}|{:05d}|{:,}|{:.1f}'.format('a', 'b', 42, 1234567, 2.25)"),
            "  a|**b**|00042|1,234,567|2.2");
}

TEST(JinjaFormatTest, RefusesTooFewAndTooManyValues) {
  EXPECT_THAT(Printed("'%s %s' % ('a',)"), HasSubstr("not enough values"));
  EXPECT_THAT(Printed("'a' % 1"), HasSubstr("not all values were used"));
  EXPECT_THAT(Printed("'{} {}'.format(1)"), HasSubstr("asks for value 1, but there are 1"));
  EXPECT_THAT(Printed("'%d' % 'a'"), HasSubstr("%d needs a number, not str"));
  EXPECT_THAT(Printed("'{'.format(1)"), HasSubstr("single '{'"));
}

TEST(JinjaFormatTest, BoundsWidths) {
  EXPECT_THAT(Printed("'%1000000000d' % 1"), HasSubstr("limit of"));
  EXPECT_THAT(Printed("'{:99999999999999999999}'.format(1)"), HasSubstr("limit of"));
}

TEST(JinjaFormatTest, KeepsWhoWroteWhat) {
  EXPECT_EQ(RenderedWithOrigins("{{ 'a%sb' % x }}{{ '<{}>'.format(x) }}", R"({"x": "U"})"),
            "a<<U>>b<<<U>>>");
}

}  // namespace
}  // namespace trireme::text::jinja
