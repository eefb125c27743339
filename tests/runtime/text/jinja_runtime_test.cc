#include "runtime/text/jinja_runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaRuntimeTest, SpendsUntilTheLimit) {
  RuntimeLimits limits;
  limits.steps_max = 10;
  Runtime runtime(limits, FixtureTime());
  EXPECT_TRUE(runtime.Spend(10).ok());
  EXPECT_EQ(runtime.Spend(1).code(), absl::StatusCode::kResourceExhausted);
}

TEST(JinjaRuntimeTest, RefusesHugeProductsBeforeTheyAreMade) {
  Runtime runtime(RuntimeLimits{}, FixtureTime());
  EXPECT_TRUE(runtime.SpendProduct(-5, 100).ok());
  EXPECT_TRUE(runtime.SpendProduct(1000, 32).ok());
  const Integer huge = static_cast<Integer>(1) << 120;
  EXPECT_EQ(runtime.SpendProduct(huge, 1).code(), absl::StatusCode::kResourceExhausted);
}

TEST(JinjaRuntimeTest, CountsTheInput) {
  RuntimeLimits limits;
  limits.input_bytes_max = 5;
  Runtime runtime(limits, FixtureTime());
  EXPECT_TRUE(runtime.SpendInput(5).ok());
  EXPECT_EQ(runtime.SpendInput(1).code(), absl::StatusCode::kResourceExhausted);
}

TEST(JinjaRuntimeTest, UsesAGeneratorUp) {
  EXPECT_EQ(Rendered("{% set g = [1, 2] | map('string') %}{{ g | list }}{{ g | list }}"),
            "['1', '2'][]");
}

TEST(JinjaRuntimeTest, BindsArgumentsByPlaceAndName) {
  EXPECT_EQ(Printed("'aaa' | replace('a', new='b', count=2)"), "bba");
  EXPECT_THAT(Printed("'a' | trim('a', chars='b')"), HasSubstr("two values for argument 'chars'"));
  EXPECT_THAT(Printed("'a' | trim(wrong=1)"), HasSubstr("no argument named 'wrong'"));
  EXPECT_THAT(Printed("'a' | upper(1)"), HasSubstr("takes at most 0 arguments"));
}

TEST(JinjaRuntimeTest, RefusesToGoThroughWhatHasNoItems) {
  EXPECT_THAT(Printed("5 | list"), HasSubstr("'int' object is not iterable"));
  EXPECT_THAT(Printed("none | list"), HasSubstr("'NoneType' object is not iterable"));
  EXPECT_EQ(Printed("missing | list"), "[]");
}

}  // namespace
}  // namespace trireme::text::jinja
