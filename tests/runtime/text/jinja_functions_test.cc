#include "runtime/text/jinja_functions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaFunctionsTest, TellsTheTimeItIsGiven) {
  EXPECT_EQ(Printed("strftime_now('%Y-%m-%d|%d %b %Y|%B %A %j %y %p %I %%|%-d|%H:%M:%S')"),
            "2025-01-31|31 Jan 2025|January Friday 031 25 PM 12 %|31|12:34:56");
}

TEST(JinjaFunctionsTest, CountsInRanges) {
  EXPECT_EQ(Printed("range(3) | list"), "[0, 1, 2]");
  EXPECT_EQ(Printed("range(5, 0, -2) | list"), "[5, 3, 1]");
  EXPECT_THAT(Printed("range(100001)"), HasSubstr("limit of 100000 items"));
  EXPECT_THAT(Printed("range(1, 5, 0)"), HasSubstr("step must not be zero"));
  EXPECT_THAT(Printed("range('a')"), HasSubstr("needs integers"));
}

TEST(JinjaFunctionsTest, MakesNamespacesAndDictionaries) {
  EXPECT_EQ(Rendered("{% set n = namespace({'a': 1}, b=2) %}{{ n.a }}{{ n.b }}"), "12");
  EXPECT_EQ(Printed("dict([('a', 1)], b='x')"), "{'a': 1, 'b': 'x'}");
  EXPECT_THAT(Printed("namespace(_x=1)"), HasSubstr("underscore"));
}

TEST(JinjaFunctionsTest, JoinsAndCycles) {
  EXPECT_EQ(Rendered("{% set j = joiner('-') %}{{ j() }}a{{ j() }}b"), "a-b");
  EXPECT_EQ(
      Rendered(
          "{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}"),
      "1212");
}

TEST(JinjaFunctionsTest, RaisesWithThePlace) {
  EXPECT_EQ(
      Rendered("a\n{{ raise_exception('bad ' ~ 1) }}"),
      "ERROR: chat template, line 2, column 19: the template refuses this conversation: bad 1");
}

TEST(JinjaFunctionsTest, FormatsSingleConversions) {
  EXPECT_EQ(FormatTime("%k %l %e %f%Z %q %", absl::CivilSecond(2025, 3, 4, 5, 6, 7)),
            " 5  5  4 000000 %q %");
}

}  // namespace
}  // namespace trireme::text::jinja
