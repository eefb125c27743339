#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/text/jinja_value.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

Value Text(const std::string& text) {
  return Value::Of(std::make_shared<const StringData>(
      StringData{TracedText(text, Origin::kTrusted), StringFlavor::kPlain}));
}

TEST(JinjaValueTest, FindsKeysInMapsOfAnySize) {
  Map map;
  for (int i = 0; i < 100; ++i) {
    map.Set(Text("k" + std::to_string(i)), Value::Of(Integer{i}));
  }
  map.Set(Text("k7"), Value::Of(Integer{-7}));
  map.Set(Value::Of(Integer{5}), Value::None());
  ASSERT_EQ(map.entries.size(), 101U);
  for (int i = 0; i < 100; ++i) {
    const Value* found = map.Find("k" + std::to_string(i));
    ASSERT_NE(found, nullptr);
    EXPECT_TRUE(found->integer() == (i == 7 ? -7 : i));
  }
  EXPECT_EQ(map.Find("nope"), nullptr);
  EXPECT_NE(map.Find(Value::Of(5.0)), nullptr);
}

TEST(JinjaValueTest, TakesEqualNumbersForTheSameKey) {
  EXPECT_TRUE(KeysEqual(Value::Of(Integer{1}), Value::Boolean(true)));
  EXPECT_TRUE(KeysEqual(Value::Of(1.0), Value::Of(Integer{1})));
  EXPECT_FALSE(KeysEqual(Text("1"), Value::Of(Integer{1})));
  EXPECT_EQ(Printed("{1: 'a', 1.0: 'b', true: 'c'}"), "{1: 'c'}");
}

TEST(JinjaValueTest, KnowsWhatIsTrue) {
  EXPECT_EQ(Printed("[not none, not 0, not 0.0, not '', not [], not {}, not x, not range(0)]"),
            "[True, True, True, True, True, True, True, True]");
  EXPECT_EQ(Printed("[not 1, not 'a', not [0], not range(1), not 0.1]"),
            "[False, False, False, False, False]");
}

TEST(JinjaValueTest, SaysWhyAValueIsMissing) {
  EXPECT_THAT(Printed("x.y"), HasSubstr("'x' is undefined"));
  EXPECT_THAT(Printed("d.q.z", R"({"d": {}})"), HasSubstr("'dict object' has no attribute 'q'"));
  EXPECT_THAT(Printed("l[9].x", R"({"l": [1]})"), HasSubstr("list object has no element 9"));
  EXPECT_THAT(Printed("([] | first).x"), HasSubstr("there is no first item"));
}

TEST(JinjaValueTest, RefusesKeysThatCanChange) {
  EXPECT_THAT(Printed("{[1]: 2}"), HasSubstr("unhashable type: 'list'"));
  EXPECT_EQ(Printed("{(1, 2): 3}[1, 2]"), "3");
}

}  // namespace
}  // namespace trireme::text::jinja
