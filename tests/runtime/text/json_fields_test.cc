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

std::string Visited(const nlohmann::json& spec) {
  std::string parts;
  const absl::Status status =
      VisitParts(spec, "decoder", "decoders", [&parts](const JsonFields& part, const auto& type) {
        parts += part.path() + " " + type + "\n";
        return type == "Bad" ? absl::InvalidArgumentError("bad") : absl::OkStatus();
      });
  return parts + std::string(status.message());
}

TEST(VisitParts, WalksSequencesInOrder) {
  const nlohmann::json strip = {{"type", "Strip"}};
  const nlohmann::json inner = {{"type", "Sequence"}, {"decoders", {strip, {{"type", "Fuse"}}}}};
  const nlohmann::json outer = {{"type", "Sequence"}, {"decoders", {inner, strip}}};
  EXPECT_EQ(Visited(strip), "decoder Strip\n");
  EXPECT_EQ(Visited(outer),
            "decoder.decoders[0].decoders[0] Strip\ndecoder.decoders[0].decoders[1] Fuse\n"
            "decoder.decoders[1] Strip\n");
  EXPECT_EQ(Visited({{"type", "Sequence"}, {"decoders", {{{"type", "Bad"}}, strip}}}),
            "decoder.decoders[0] Bad\nbad");
  EXPECT_EQ(Visited({{"type", "Sequence"}}), "decoder.decoders is missing; wanted a list");
  nlohmann::json deep = strip;
  for (int i = 0; i < 9; ++i) {
    deep = {{"type", "Sequence"}, {"decoders", nlohmann::json::array({deep})}};
  }
  EXPECT_NE(Visited(deep).find("sequences are nested deeper than 8"), std::string::npos);
}

}  // namespace
}  // namespace trireme::text
