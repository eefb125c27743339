#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

constexpr char kTurns[] = R"({"m": [
  {"r": "user", "c": "b", "n": 2}, {"r": "bot", "c": "A"}, {"r": "user", "c": "C", "n": 1}]})";

TEST(JinjaOrderingFiltersTest, SortsWithoutRegardToCaseAndKeepsEqualItemsInOrder) {
  EXPECT_EQ(Printed("['b', 'A', 'c'] | sort"), "['A', 'b', 'c']");
  EXPECT_EQ(Printed("m | sort(attribute='r') | map(attribute='c') | list", kTurns),
            "['A', 'b', 'C']");
  EXPECT_EQ(Printed("m | sort(attribute='r', reverse=true) | map(attribute='c') | list", kTurns),
            "['b', 'C', 'A']");
  EXPECT_EQ(Printed("{'b': 1, 'A': 2} | dictsort"), "[('A', 2), ('b', 1)]");
  EXPECT_THAT(Printed("[1, 'a'] | sort"), HasSubstr("is not defined between"));
}

TEST(JinjaOrderingFiltersTest, SortsAnyNumberOfItems) {
  for (int count = 0; count < 40; ++count) {
    const std::string n = std::to_string(count);
    EXPECT_EQ(Printed("range(" + n + ") | reverse | sort == range(" + n + ") | list"), "True") << n;
  }
}

TEST(JinjaOrderingFiltersTest, SortsBySeveralAttributes) {
  EXPECT_EQ(Printed("m | sort(attribute='r,n') | selectattr('n') | map(attribute='c') | list",
                    R"({"m": [{"r": "b", "n": 1, "c": "x"}, {"r": "a", "n": 2, "c": "y"},
                              {"r": "a", "n": 1, "c": "z"}]})"),
            "['z', 'y', 'x']");
}

TEST(JinjaOrderingFiltersTest, KeepsTheFirstOfEqualItems) {
  EXPECT_EQ(Printed("['a', 'A', 'b'] | unique | list"), "['a', 'b']");
  EXPECT_EQ(Printed("['a', 'A'] | unique(case_sensitive=true) | list"), "['a', 'A']");
  EXPECT_THAT(Printed("[[1], [1]] | unique | list"), HasSubstr("unhashable"));
}

TEST(JinjaOrderingFiltersTest, NamesGroupsByTheirFirstMember) {
  EXPECT_EQ(Printed("(m | groupby('r'))[1].grouper ~ (m | groupby('n', default=0))[0][0]", kTurns),
            "user0");
}

}  // namespace
}  // namespace trireme::text::jinja
