#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaElementsTest, CountsFromBothEnds) {
  const std::string variables = R"({"l": [1, 2, 3], "s": "a\u00e9\u4f60"})";
  EXPECT_EQ(Printed("l[0] ~ l[-1] ~ s[1] ~ s[-1]", variables), "13\u00e9\u4f60");
  EXPECT_EQ(Printed("l[3] is defined", variables), "False");
  EXPECT_EQ(Printed("l.1", variables), "2");
}

TEST(JinjaElementsTest, SlicesListsAndCharacters) {
  const std::string variables = R"({"l": [1, 2, 3, 4, 5], "s": "a\u00e9\u4f60z"})";
  EXPECT_EQ(Printed("l[1:] ~ l[:-1] ~ l[::2] ~ l[::-1] ~ l[3:1:-1]", variables),
            "[2, 3, 4, 5][1, 2, 3, 4][1, 3, 5][5, 4, 3, 2, 1][4, 3]");
  EXPECT_EQ(Printed("s[1:3] ~ s[::-1] ~ s[:-2] ~ s[5:]", variables),
            "\u00e9\u4f60z\u4f60\u00e9aa\u00e9");
  EXPECT_EQ(Printed("range(10)[2:5] | list", variables), "[2, 3, 4]");
}

TEST(JinjaElementsTest, ClampsBoundsOfAnySize) {
  EXPECT_EQ(Printed("'abc'[::10 ** 30] ~ 'abc'[10 ** 30:] ~ 'abc'[-(10 ** 30):]"), "aabc");
  EXPECT_THAT(Printed("[1][::0]"), HasSubstr("slice step cannot be zero"));
  EXPECT_THAT(Printed("5[1:]"), HasSubstr("'int' cannot be sliced"));
}

TEST(JinjaElementsTest, PrefersElementsInBracketsAndMethodsAfterDots) {
  const std::string variables = R"({"d": {"items": 3, "a": 1}})";
  EXPECT_EQ(Printed("d['items'] ~ d.a ~ d.items is callable", variables), "31True");
  EXPECT_EQ(Printed("d.items() | list", variables), "[('items', 3), ('a', 1)]");
}

TEST(JinjaElementsTest, MeasuresInCharactersAndEntries) {
  EXPECT_EQ(Printed("'a\u00e9' | length ~ {'a': 1} | length ~ range(4) | length"), "214");
  EXPECT_THAT(Printed("5 | length"), HasSubstr("'int' has no length"));
}

}  // namespace
}  // namespace trireme::text::jinja
