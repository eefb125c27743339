#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaMethodsTest, GoesThroughMappings) {
  const std::string variables = R"({"d": {"b": 2, "a": 1}})";
  EXPECT_EQ(Printed("d.items() | list", variables), "[('b', 2), ('a', 1)]");
  EXPECT_EQ(Printed("d.keys() ~ d.values()", variables),
            "dict_keys(['b', 'a'])dict_values([2, 1])");
  EXPECT_EQ(Printed("d.get('a') ~ d.get('q') ~ d.get('q', 'x')", variables), "1Nonex");
}

TEST(JinjaMethodsTest, SearchesLists) {
  EXPECT_EQ(Printed("[1, 2].index(2) ~ [1, 1].count(1)"), "12");
  EXPECT_THAT(Printed("[1].index(5)"), HasSubstr("not in the list"));
}

TEST(JinjaMethodsTest, KnowsTheFieldsOfALoop) {
  EXPECT_EQ(Rendered("{% for x in [3, 1] %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{{ "
                     "loop.revindex0 }}{{ loop.previtem }}{{ loop.nextitem }}{% endfor %}"),
            "aTrue11bTrue03");
}

TEST(JinjaMethodsTest, RefusesArgumentsThatDoNotFit) {
  EXPECT_THAT(Printed("{}.items(1)"), HasSubstr("items() takes at most 0 arguments, got 1"));
  EXPECT_THAT(Printed("{}.get()"), HasSubstr("needs a key"));
  EXPECT_THAT(Printed("'a'.replace('a')"), HasSubstr("replace needs a string, not nothing"));
}

}  // namespace
}  // namespace trireme::text::jinja
