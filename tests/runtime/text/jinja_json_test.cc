#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/text/jinja_json.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaJsonTest, KeepsOrderAndBigIntegers) {
  EXPECT_EQ(Printed("x", R"({"x": {"b": 1, "a": [100000000000000000000, -1e3, null]}})"),
            "{'b': 1, 'a': [100000000000000000000, -1000.0, None]}");
  EXPECT_EQ(Printed("x", R"({"x": {"a": 1, "b": 2, "a": 3}})"), "{'a': 3, 'b': 2}");
}

TEST(JinjaJsonTest, EscapesLikePython) {
  EXPECT_EQ(Printed("x | tojson", R"({"x": "\u00e9\"\\/\n\t<&>'\u0001\u007f"})"),
            "\"\u00e9\\\"\\\\/\\n\\t<&>'\\u0001\x7f\"");
  EXPECT_EQ(Printed("x | tojson(ensure_ascii=true)", R"({"x": "\u00e9\ud83d\ude00"})"),
            R"("\u00e9\ud83d\ude00")");
}

TEST(JinjaJsonTest, IndentsAndSeparates) {
  EXPECT_EQ(Printed("{'a': [1, []], 'b': {}} | tojson(indent=2)"),
            "{\n  \"a\": [\n    1,\n    []\n  ],\n  \"b\": {}\n}");
  EXPECT_EQ(Printed("{'a': [1, 2]} | tojson(separators=(', ', ' = '), indent=1)"),
            "{\n \"a\" = [\n  1, \n  2\n ]\n}");
}

TEST(JinjaJsonTest, RefusesWhatJsonCannotSay) {
  EXPECT_THAT(Printed("x | tojson"),
              HasSubstr("type Undefined cannot be written as JSON ('x' is undefined)"));
  EXPECT_THAT(Printed("range(3) | tojson"), HasSubstr("type range cannot be written"));
  EXPECT_THAT(Printed("namespace() | tojson"), HasSubstr("type Namespace"));
}

TEST(JinjaJsonTest, StopsAtDepth) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_EQ(ParseJson(deep).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(ParseJson(std::string(100, '[') + std::string(100, ']')).ok());
}

TEST(JinjaJsonTest, SaysWhereTheTextIsNotJson) {
  EXPECT_THAT(std::string(ParseJson("{\"a\": }").status().message()),
              HasSubstr("not valid JSON at byte 7"));
  EXPECT_FALSE(ParseJson("").ok());
  EXPECT_FALSE(ParseJson("\"\xff\"").ok());
  EXPECT_FALSE(ParseJson("[1] 2").ok());
}

}  // namespace
}  // namespace trireme::text::jinja
