#include "runtime/text/json_pipeline.h"

#include "gtest/gtest.h"
#include "runtime/text/detokenizer.h"
#include "runtime/text/tokenizer.h"

namespace trireme::text {
namespace {

using JsonIds = std::vector<int32_t>;

// Characters and three added tokens: special, used by the template, and neither.
nlohmann::json SmallFile() {
  return nlohmann::json::parse(R"({
      "version": "1.0",
      "added_tokens": [
        {"id": 5, "content": "<s>", "special": true, "normalized": false},
        {"id": 6, "content": "<turn>", "special": false, "normalized": true},
        {"id": 7, "content": "ab", "special": false, "normalized": false}],
      "normalizer": {"type": "Lowercase"},
      "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2, "<": 3, ">": 4},
                "merges": []},
      "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [5]}}},
      "decoder": {"type": "Fuse"}})");
}

std::unique_ptr<Tokenizer> JsonTokenizer(const nlohmann::json& file,
                                         const std::string& chat_template = "") {
  auto tokenizer = Tokenizer::CreateFromJson(file.dump(), {.chat_template = chat_template});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

TEST(JsonPipeline, MatchesAddedTokensAsFarAsAsked) {
  const auto tokenizer = JsonTokenizer(SmallFile());
  EXPECT_EQ(*tokenizer->Encode("<s>abA<TURN>", SpecialTokens::kParse, true),
            (JsonIds{5, 5, 7, 1, 6}));
  EXPECT_EQ(*tokenizer->Encode("<s>ab", SpecialTokens::kAsText, false), (JsonIds{3, 0, 4, 7}));
  EXPECT_EQ(*tokenizer->Encode("<s>ab", SpecialTokens::kAllAsText, false),
            (JsonIds{3, 0, 4, 1, 2}));
}

TEST(JsonPipeline, C7_UsersCannotWriteSpecialTokensOrTurnMarkers) {
  const auto tokenizer = JsonTokenizer(SmallFile(), "<s><turn>{{ x }}");
  const std::vector<TextSegment> segments = {
      {"<turn>", true}, {"ab<s><turn>", false}, {"<turn>", true}};
  EXPECT_EQ(*tokenizer->EncodeSegments(segments, true),
            (JsonIds{5, 6, 7, 3, 0, 4, 3, 0, 0, 0, 0, 4, 6}));
}

TEST(JsonPipeline, TokensThatTwoWritersMakeTogetherAreText) {
  const auto tokenizer = JsonTokenizer(SmallFile(), "<turn>");
  const std::vector<TextSegment> segments = {{"<tu", true}, {"rn>", false}};
  EXPECT_EQ(*tokenizer->EncodeSegments(segments, false), (JsonIds{3, 0, 0, 0, 0, 4}));
}

TEST(JsonPipeline, HidesSpecialTokensAndWritesOthersAsTheyAre) {
  const auto tokenizer = JsonTokenizer(SmallFile());
  EXPECT_EQ(*Decode(*tokenizer, JsonIds{5, 1, 6}, SpecialTokenDisplay::kShow), "<s>a<turn>");
  EXPECT_EQ(*Decode(*tokenizer, JsonIds{5, 1, 6}, SpecialTokenDisplay::kHide), "a<turn>");
  EXPECT_EQ(tokenizer->bos_id(), 5);
  EXPECT_TRUE(tokenizer->adds_bos());
}

TEST(JsonPipeline, JoinsTokensWithSpacesWithoutADecoder) {
  nlohmann::json file = SmallFile();
  file["decoder"] = nullptr;
  EXPECT_EQ(*Decode(*JsonTokenizer(file), JsonIds{1, 2}, SpecialTokenDisplay::kShow), "a b");
}

TEST(JsonPipeline, C9_RefusesIdsWithHoles) {
  nlohmann::json file = SmallFile();
  file["model"]["vocab"]["b"] = 9;
  const auto tokenizer = Tokenizer::CreateFromJson(file.dump(), {});
  EXPECT_NE(tokenizer.status().message().find("model.vocab[\"b\"] is 9"), std::string::npos)
      << tokenizer.status();
}

}  // namespace
}  // namespace trireme::text
