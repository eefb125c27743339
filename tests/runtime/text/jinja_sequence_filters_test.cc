#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

constexpr char kMessages[] = R"({"m": [
  {"r": "user", "c": "b", "n": 2}, {"r": "bot", "c": "A"}, {"r": "user", "c": "C", "n": 1}]})";

TEST(JinjaSequenceFiltersTest, SelectsAndMaps) {
  EXPECT_EQ(
      Printed("m | selectattr('r', 'equalto', 'user') | map(attribute='c') | list", kMessages),
      "['b', 'C']");
  EXPECT_EQ(Printed("m | rejectattr('n') | map(attribute='c') | list", kMessages), "['A']");
  EXPECT_EQ(Printed("m | map(attribute='n', default=0) | sum", kMessages), "3");
  EXPECT_EQ(Printed("[1, 2, 3] | select('odd') | list ~ [0, 'a'] | select | list ~ ['a'] | "
                    "map('upper') | list"),
            "[1, 3]['a']['A']");
  EXPECT_EQ(Printed("none | selectattr('a') | list"), "[]");
}

TEST(JinjaSequenceFiltersTest, GroupsAndCutsLists) {
  EXPECT_EQ(
      Rendered("{% for g in m | groupby('r') %}{{ g.grouper }}{{ g.list | length }};{% endfor %}",
               kMessages),
      "bot1;user2;");
  EXPECT_EQ(Printed("range(5) | batch(2) | list"), "[[0, 1], [2, 3], [4]]");
  EXPECT_EQ(Printed("[1, 2, 3] | slice(2, 'x') | list"), "[[1, 2], [3, 'x']]");
}

TEST(JinjaSequenceFiltersTest, FindsExtremesAndEnds) {
  EXPECT_EQ(Printed("[1, 5, 3] | max ~ [1, 5, 3] | min ~ [3, 1] | first ~ [3, 1] | last ~ ([] | "
                    "first is defined)"),
            "5131False");
  EXPECT_EQ(Printed("[1, 1.0, 'a', 'A'] | unique | list"), "[1, 'a']");
  EXPECT_EQ(Printed("[1, none, 'a'] | join(', ')"), "1, None, a");
}

TEST(JinjaSequenceFiltersTest, GivesPairsOnlyOfMappings) {
  EXPECT_EQ(Printed("{'a': 1} | items | list"), "[('a', 1)]");
  EXPECT_EQ(Printed("missing | items | list"), "[]");
  EXPECT_THAT(Printed("'a' | items"), HasSubstr("items needs a mapping, not str"));
}

}  // namespace
}  // namespace trireme::text::jinja
