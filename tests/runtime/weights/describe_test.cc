#include "runtime/weights/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/base/utf8.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/gguf_fixtures.h"

namespace trireme::weights {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

std::unique_ptr<GgufFile> Open(absl::string_view name) {
  auto file = GgufFile::Open(absl::StrCat(kGgufFixtures, "/", name));
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

// One Q4_0 tensor of 64 values in 36 bytes and one F32 tensor of 3: 48 bytes for 67 weights are
// 5.731 bits each.
class SmallFile {
 public:
  SmallFile()
      : bytes_(GgufBuilder()
                   .String("general.name", "line one\nline \x1b[31mtwo\xff")
                   .Entry("numbers", 9, EncodedArray(0, 10, "\x01\x02\x03\x04\x05\x06\x07\x08\t\n"))
                   .Entry("epsilon", 6, Encoded(1e-5F))
                   .Tensor("w", {32, 2}, 2, 0)
                   .Tensor("b", {3}, 0, 64)
                   .Build(std::string(76, '\0'))),
        file_(*GgufFile::FromBytes("small.gguf", bytes_.span())) {}
  const GgufFile& file() const { return *file_; }

 private:
  ExactBytes bytes_;
  std::unique_ptr<GgufFile> file_;
};

TEST(DescribeTest, TextListsTensorsWithTheirFormats) {
  const std::string text = DescribeAsText(SmallFile().file());
  EXPECT_THAT(text, HasSubstr("small.gguf: GGUF version 3, alignment 32, "));
  EXPECT_THAT(text, ContainsRegex("  w +32 x 2 +Q4_0 +4\\.5 +36\n"));
  EXPECT_THAT(text, ContainsRegex("  b +3 +F32 +32 +12\n"));
  EXPECT_THAT(text, ContainsRegex("  Q4_0 +1 +64 +36 +4\\.5\n"));
  EXPECT_THAT(text, ContainsRegex("  total +2 +67 +48 +5\\.731\n"));
}

TEST(DescribeTest, TextShowsValuesOnOneLineEach) {
  const std::string text = DescribeAsText(SmallFile().file());
  EXPECT_THAT(text, ContainsRegex("general.name +string +\"line one\\\\nline \\\\033\\[31mtwo"));
  EXPECT_THAT(text,
              ContainsRegex("numbers +u8\\[10\\] +\\[1, 2, 3, 4, 5, 6, 7, 8, \\.\\.\\.\\]\n"));
  EXPECT_THAT(text, ContainsRegex("epsilon +f32 +9\\.99999975e-06\n"));
  EXPECT_TRUE(IsValidUtf8(text));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(DescribeTest, LongStringsAreCutBetweenCharacters) {
  const ExactBytes bytes(GgufBuilder().String("k", std::string(9, 'a') + "\xc3\xa9tail").Build());
  const auto file = GgufFile::FromBytes("f", bytes.span());
  EXPECT_THAT(DescribeAsText(**file, {.max_string_bytes = 10}),
              HasSubstr("\"aaaaaaaaa\"... (15 bytes)"));
}

TEST(DescribeTest, JsonHoldsTheSameAsNumbers) {
  const Json json = Json::parse(DescribeAsJson(SmallFile().file()));
  EXPECT_EQ(json.at("file"), "small.gguf");
  EXPECT_EQ(json.at("version"), 3);
  EXPECT_EQ(json.at("parts"), 1);
  EXPECT_EQ(json.at("metadata").at(1).at("key"), "numbers");
  EXPECT_EQ(json.at("metadata").at(1).at("element_type"), "u8");
  EXPECT_EQ(json.at("metadata").at(1).at("count"), 10);
  EXPECT_EQ(json.at("metadata").at(1).at("value"), Json::array({1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_FLOAT_EQ(json.at("metadata").at(2).at("value").get<float>(), 1e-5F);
  EXPECT_EQ(json.at("tensors").at(0).at("name"), "w");
  EXPECT_EQ(json.at("tensors").at(0).at("dimensions"), Json::array({32, 2}));
  EXPECT_EQ(json.at("tensors").at(0).at("type"), "Q4_0");
  EXPECT_EQ(json.at("tensors").at(0).at("bits_per_weight"), 4.5);
  EXPECT_EQ(json.at("types").at("F32").at("bytes"), 12);
  EXPECT_EQ(json.at("total").at("elements"), 67);
  EXPECT_DOUBLE_EQ(json.at("total").at("bits_per_weight").get<double>(), 8.0 * 48 / 67);
}

TEST(DescribeTest, EveryFileThatOpensCanBeDescribed) {
  int files = 0;
  for (const char* const name :
       {"good/values.gguf", "good/nested.gguf", "good/names.gguf", "good/types.gguf",
        "good/dims.gguf", "good/nothing.gguf", "good/base-bpe.gguf", "odd/value-bad-utf8.gguf",
        "odd/extra-tensor-zero.gguf", "good/split3/tiny-00001-of-00003.gguf"}) {
    const std::unique_ptr<GgufFile> file = Open(name);
    EXPECT_TRUE(IsValidUtf8(DescribeAsText(*file))) << name;
    const Json json = Json::parse(DescribeAsJson(*file));
    EXPECT_EQ(json.at("metadata").size(), file->metadata().entries().size()) << name;
    EXPECT_EQ(json.at("tensors").size(), file->tensors().size()) << name;
    ++files;
  }
  EXPECT_EQ(files, 10);
}

TEST(DescribeTest, ExtremeValuesAreShownExactly) {
  const std::unique_ptr<GgufFile> file = Open("good/values.gguf");
  const std::string text = DescribeAsText(*file);
  EXPECT_THAT(text, ContainsRegex("v.u64.max +u64 +18446744073709551615\n"));
  EXPECT_THAT(text, ContainsRegex("v.i64.min +i64 +-9223372036854775808\n"));
  EXPECT_THAT(text, ContainsRegex("v.f64.tenth +f64 +0\\.10000000000000001\n"));
  EXPECT_THAT(text, ContainsRegex("v.f32.nan +f32 +nan\n"));
  const std::string json = DescribeAsJson(*file);
  EXPECT_THAT(json, HasSubstr("18446744073709551615"));
  EXPECT_THAT(json, HasSubstr("\"-inf\""));
}

TEST(DescribeTest, GenerationShowsWhereEachValueComesFrom) {
  const GenerationDefaults generation = {
      .end_ids = {{.id = 7, .source = "tokenizer.ggml.eos_token_id"}},
      .sampling = {{.name = "top_p", .value = 0.5, .source = "general.sampling.top_p"}}};
  const std::string text = DescribeAsText(SmallFile().file(), {}, &generation);
  EXPECT_THAT(text, HasSubstr("end id               7          from tokenizer.ggml.eos_token_id"));
  EXPECT_THAT(text, HasSubstr("top_p                0.5        from general.sampling.top_p"));
  const Json json = Json::parse(DescribeAsJson(SmallFile().file(), {}, &generation));
  EXPECT_EQ(json["generation"]["end_ids"][0]["id"], 7);
  EXPECT_EQ(json["generation"]["sampling"]["top_p"]["source"], "general.sampling.top_p");
}

}  // namespace
}  // namespace trireme::weights
