#include "runtime/text/jinja_path.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(JinjaPathTest, FollowsNamesAndPositions) {
  const std::string variables = R"({"l": [{"a": {"b": [7, 8]}}]})";
  EXPECT_EQ(Printed("l | map(attribute='a.b.1') | list", variables), "[8]");
  EXPECT_EQ(Printed("[[1, 2], [3, 4]] | map(attribute=1) | list"), "[2, 4]");
  EXPECT_THAT(Printed("l | map(attribute='x.y') | list", variables),
              HasSubstr("'dict object' has no attribute 'x'"));
}

TEST(JinjaPathTest, SplitsAtEverySeparator) {
  EXPECT_THAT(SplitAt("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(SplitAt("", ','), ElementsAre(""));
}

TEST(JinjaPathTest, SaysWhatAnEmptySequenceLacks) {
  EXPECT_TRUE(EmptyUndefined("no item").IsUndefined());
  EXPECT_EQ(UndefinedMessage(EmptyUndefined("no item")), "no item");
}

}  // namespace
}  // namespace trireme::text::jinja
