#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaFiltersTest, ConvertsToIntegersAndFloats) {
  EXPECT_EQ(Printed("'42' | int + 1"), "43");
  EXPECT_EQ(
      Printed("('x' | int) ~ ('3.7' | int) ~ ('q' | int(default=7)) ~ ('0x1f' | int(base=16))"),
      "03731");
  EXPECT_EQ(Printed("('2.5' | float) ~ ('x' | float(1.5)) ~ (7 | float)"), "2.51.57.0");
  EXPECT_THAT(Printed("missing | int"), HasSubstr("'missing' is undefined"));
}

TEST(JinjaFiltersTest, RoundsHalvesToEvenByTheExactBinaryValue) {
  EXPECT_EQ(Printed("(2.5 | round) ~ ' ' ~ (3.5 | round) ~ ' ' ~ (2.675 | round(2))"),
            "2.0 4.0 2.67");
  EXPECT_EQ(Printed("(2.1 | round(0, 'ceil')) ~ (2.9 | round(method='floor'))"), "3.02.0");
}

TEST(JinjaFiltersTest, ReplacesMissingValues) {
  EXPECT_EQ(Printed("(x | default('d')) ~ ('' | default('d')) ~ ('' | default('d', true)) ~ (none "
                    "| d('e', boolean=true))"),
            "dde");
}

TEST(JinjaFiltersTest, WritesAndReadsJson) {
  EXPECT_EQ(Printed("{'a': [1, none, true], 'b': 'x'} | tojson"),
            R"({"a": [1, null, true], "b": "x"})");
  EXPECT_EQ(Printed("{'b': 1, 'a': 2} | tojson(sort_keys=true, separators=(',', ':'))"),
            R"({"a":2,"b":1})");
  EXPECT_EQ(Printed("('[1, {\"a\": 2}]' | from_json)[1].a"), "2");
}

TEST(JinjaFiltersTest, NamesTheFilterThatDoesNotExist) {
  EXPECT_THAT(Printed("1 | nosuch"), HasSubstr("there is no filter named 'nosuch'"));
  EXPECT_EQ(Rendered("{% if false %}{{ 1 | nosuch }}{% endif %}ok"), "ok");
}

}  // namespace
}  // namespace trireme::text::jinja
