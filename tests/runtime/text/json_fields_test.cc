#include "runtime/text/json_fields.h"

#include "gtest/gtest.h"

namespace trireme::text {
namespace {

TEST(ParseJsonFile, RefusesWhatIsNoStrictJson) {
  for (const char* text : {"", "{", "{} x", "\xef\xbb\xbf{}", "{\"a\": \"\\ud800\"}",
                           "{\"a\": \"\\x\"}", "[1,]", "\xff"}) {
    EXPECT_EQ(ParseJsonFile(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_TRUE(ParseJsonFile("{\"a\": [\"[[[\\\"[[\"]}").ok());
}

TEST(ParseJsonFile, CountsLevelsBeforeItParses) {
  const std::string deep = std::string(1000000, '[');
  EXPECT_NE(ParseJsonFile(deep).status().message().find("nested deeper than 64"),
            std::string::npos);
}

TEST(JsonFields, SaysWhichMemberIsWrong) {
  const nlohmann::json json = {{"name", 1}, {"id", -1}, {"list", nullptr}};
  const auto fields = JsonFields::Of(json, "model");
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ(fields->String("name").status().message(), "model.name is number; wanted a string");
  EXPECT_EQ(fields->List("list").status().message(), "model.list is missing; wanted a list");
  EXPECT_EQ(fields->Id("id").status().message(),
            "model.id is -1; wanted a token id from 0 to 2147483647");
  EXPECT_FALSE(JsonFields::Of(nlohmann::json::array(), "model").ok());
  EXPECT_EQ(*fields->Flag("flag", true), true);
}

}  // namespace
}  // namespace trireme::text
