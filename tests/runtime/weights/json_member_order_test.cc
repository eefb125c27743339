#include "runtime/weights/json_member_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace trireme::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(JsonMemberOrderTest, NamesStandAsTheFileHasThem) {
  EXPECT_THAT(JsonMemberOrder(R"({"z":1,"a":{"y":2},"m":[{"x":3}]})", {}),
              ElementsAre("z", "a", "m"));
}

TEST(JsonMemberOrderTest, APathLeadsThroughObjectsOnly) {
  const std::string text =
      R"({"x":{"b":9},"list":[{"x":{"no":1}}],"a":{"x":{"q":{"p":1},"b":[{"r":2}],"a":3},"c":4}})";
  EXPECT_THAT(JsonMemberOrder(text, {"a", "x"}), ElementsAre("q", "b", "a"));
  EXPECT_THAT(JsonMemberOrder(text, {"x"}), ElementsAre("b"));
  EXPECT_THAT(JsonMemberOrder(text, {"a", "x", "q"}), ElementsAre("p"));
  EXPECT_THAT(JsonMemberOrder(text, {"list", "x"}), IsEmpty());
  EXPECT_THAT(JsonMemberOrder(text, {"a", "c"}), IsEmpty());
  EXPECT_THAT(JsonMemberOrder(text, {"b"}), IsEmpty());
}

TEST(JsonMemberOrderTest, RepeatedNamesCountOnceAndOfRepeatedObjectsTheLast) {
  EXPECT_THAT(JsonMemberOrder(R"({"b":1,"a":2,"b":3})", {}), ElementsAre("b", "a"));
  EXPECT_THAT(JsonMemberOrder(R"({"o":{"a":1,"b":2},"o":{"c":3}})", {"o"}), ElementsAre("c"));
}

TEST(JsonMemberOrderTest, WhatIsNoObjectHasNoMembers) {
  EXPECT_THAT(JsonMemberOrder("[]", {}), IsEmpty());
  EXPECT_THAT(JsonMemberOrder("5", {"a"}), IsEmpty());
  EXPECT_THAT(JsonMemberOrder(R"({"a":null})", {"a"}), IsEmpty());
}

}  // namespace
}  // namespace trireme::weights
