#include "runtime/weights/json_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace trireme::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<JsonConfig> ConfigOf(const std::string& text) {
  auto config = JsonConfig::Parse("config.json", text);
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

TEST(JsonConfigTest, KeysReachIntoObjectsAndNullIsAbsent) {
  const auto config =
      ConfigOf(R"({"a":{"b":{"c":7}},"n":null,"x":1.5,"big":1e6,"t":true,"s":"text"})");
  EXPECT_EQ(*config->Integer("a.b.c"), 7);
  EXPECT_FALSE(config->Has("n"));
  EXPECT_FALSE(config->Has("a.b.d"));
  EXPECT_FALSE(config->Has("x.y"));
  EXPECT_EQ(*config->Float("x"), 1.5);
  EXPECT_EQ(*config->Integer("big"), 1000000);
  EXPECT_TRUE(*config->Bool("t"));
  EXPECT_EQ(*config->String("s"), "text");
  EXPECT_TRUE(absl::IsNotFound(config->Integer("n").status()));
}

TEST(JsonConfigTest, AnInnerObjectKeepsItsWholeKeyInErrors) {
  const auto config = ConfigOf(R"({"a":{"x.*":{"n":1},"y":2,"z":{"n":"text"}}})");
  EXPECT_EQ(config->Object("b"), nullptr);
  EXPECT_EQ(config->Object("a")->Object("y"), nullptr);
  EXPECT_EQ(*config->Object("a")->IntegerOr("y", 5), 2);
  EXPECT_EQ(*config->Object("a")->IntegerOr("w", 5), 5);
  const auto members = config->Objects("a");
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].first, "x.*");
  EXPECT_EQ(*members[0].second->Integer("n"), 1);
  EXPECT_THAT(std::string(members[1].second->Integer("n").status().message()),
              HasSubstr("config.json: key a.z.n is"));
}

TEST(JsonConfigTest, MembersComeInTheOrderOfTheFile) {
  const auto config = ConfigOf(
      R"({"rules":{"no":{}},"t":{"q":{"rules":{"z":{"n":1},"a.b":{"n":2},"y":3,"m":{"n":4}}}}})");
  config->EnterIfObject("t");
  const auto members = config->Object("q")->Objects("rules");
  ASSERT_EQ(members.size(), 3u);
  EXPECT_EQ(members[0].first, "z");
  EXPECT_EQ(members[1].first, "a.b");
  EXPECT_EQ(*members[1].second->Integer("n"), 2);
  EXPECT_EQ(members[2].first, "m");
}

TEST(JsonConfigTest, ListsAndWhatCountsAsOne) {
  const auto config = ConfigOf(R"({"i":[1,true],"one":5,"f":[1,2.5],"s":["a","b"]})");
  EXPECT_THAT(*config->Integers("i"), ElementsAre(1, 1));
  EXPECT_THAT(*config->Integers("one"), ElementsAre(5));
  EXPECT_THAT(*config->Floats("f"), ElementsAre(1, 2.5));
  EXPECT_THAT(*config->Strings("s"), ElementsAre("a", "b"));
  EXPECT_EQ(*config->ArrayLength("i"), 2);
  EXPECT_FALSE(config->ArrayLength("one").ok());
}

TEST(JsonConfigTest, ErrorsNameFileKeyValueAndWhatWasWanted) {
  const auto config = ConfigOf(R"({"k":"eight","h":1.5,"u":18446744073709551615})");
  const std::string text(config->Integer("k").status().message());
  EXPECT_THAT(text, HasSubstr("config.json"));
  EXPECT_THAT(text, HasSubstr("key k"));
  EXPECT_THAT(text, HasSubstr("\"eight\""));
  EXPECT_THAT(text, HasSubstr("an integer"));
  EXPECT_FALSE(config->Integer("h").ok());
  EXPECT_FALSE(config->Integer("u").ok());
}

TEST(JsonConfigTest, WhatIsNoObjectIsRefused) {
  EXPECT_FALSE(JsonConfig::Parse("f", "[1]").ok());
  EXPECT_FALSE(JsonConfig::Parse("f", "{").ok());
  EXPECT_FALSE(JsonConfig::Parse("f", "").ok());
  EXPECT_FALSE(JsonConfig::Parse("f", std::string(100000, '[')).ok());
}

TEST(JsonConfigTest, EntersTheTextModelOfAWrapper) {
  const auto config = ConfigOf(R"({"model_type":"outer","text_config":{"model_type":"inner"}})");
  config->EnterIfObject("vision_config");
  EXPECT_EQ(*config->String("model_type"), "outer");
  config->EnterIfObject("text_config");
  EXPECT_EQ(*config->String("model_type"), "inner");
}

}  // namespace
}  // namespace trireme::weights
