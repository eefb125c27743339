#include "runtime/text/detokenizer.h"

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/fixture_files.h"

namespace trireme::text {
namespace {

std::unique_ptr<Tokenizer> MakeTokenizer() {
  return Tokenizer::Create(MakeByteLevelVocabulary({"h i"}, {{"<|end|>", TokenType::kControl},
                                                             {"<tool>", TokenType::kUserDefined}}))
      .value();
}

TEST(Detokenizer, HoldsACharacterBackUntilItIsWhole) {
  const auto tokenizer = MakeTokenizer();
  Detokenizer detokenizer(tokenizer.get(), SpecialTokenDisplay::kShow, TextStart::kContinuation);
  EXPECT_EQ(detokenizer.Append(256), "hi");
  EXPECT_EQ(detokenizer.Append(0xf0), "");
  EXPECT_EQ(detokenizer.Append(0x9f), "");
  EXPECT_EQ(detokenizer.Append(0x98), "");
  EXPECT_EQ(detokenizer.Append(0x80), "\xf0\x9f\x98\x80");
  EXPECT_EQ(detokenizer.Finish(), "");
}

TEST(Detokenizer, EndsACutCharacterWithOneReplacement) {
  const auto tokenizer = MakeTokenizer();
  Detokenizer detokenizer(tokenizer.get(), SpecialTokenDisplay::kShow, TextStart::kContinuation);
  EXPECT_EQ(detokenizer.Append(0xf0), "");
  EXPECT_EQ(detokenizer.Append(0x9f), "");
  EXPECT_EQ(detokenizer.Finish(), "\xef\xbf\xbd");
}

TEST(Detokenizer, HidesControlTokensAndShowsUserDefinedOnes) {
  const auto tokenizer = MakeTokenizer();
  const std::vector<int32_t> ids = {256, 257, 258};
  EXPECT_EQ(*Decode(*tokenizer, ids, SpecialTokenDisplay::kShow), "hi<|end|><tool>");
  EXPECT_EQ(*Decode(*tokenizer, ids, SpecialTokenDisplay::kHide), "hi<tool>");
}

TEST(Detokenizer, RefusesIdsOutsideTheVocabularyByNumber) {
  const auto tokenizer = MakeTokenizer();
  const auto text = Decode(*tokenizer, {256, 259}, SpecialTokenDisplay::kShow);
  EXPECT_EQ(text.status().message(),
            "token id 259 at position 1 is outside the vocabulary, which has ids 0 to 258");
  EXPECT_FALSE(Decode(*tokenizer, {-1}, SpecialTokenDisplay::kShow).ok());
}

TEST(Detokenizer, TakesTheSpaceOfEncodingAwayFromWholeTextsOnly) {
  VocabularyData data;
  data.model = "llama";
  data.tokens = {"<unk>", "<s>", "</s>",
                 "\xe2\x96\x81"
                 "a",
                 "\xe2\x96\x81"};
  data.token_types = {2, 3, 3, 1, 1};
  data.scores = {0, 0, 0, -1, -2};
  const auto tokenizer = Tokenizer::Create(data).value();
  EXPECT_EQ(*Decode(*tokenizer, {3, 3}, SpecialTokenDisplay::kShow, TextStart::kWhole), "a a");
  EXPECT_EQ(*Decode(*tokenizer, {3, 3}, SpecialTokenDisplay::kShow, TextStart::kContinuation),
            " a a");
}

TEST(Utf8Assembler, DeliversWhatTheFixtureSaysAfterEachPiece) {
  const auto path = FindFixture("tokenizers/parts/streaming.json");
  if (!path.has_value()) {
    return;
  }
  const nlohmann::json file = ReadJson(*path);
  ASSERT_GT(file["cases"].size(), 100u);
  for (const auto& row : file["cases"]) {
    Utf8Assembler assembler;
    for (size_t i = 0; i < row["bytes_hex"].size(); ++i) {
      const std::string bytes = absl::HexStringToBytes(row["bytes_hex"][i].get<std::string>());
      EXPECT_EQ(assembler.Append(bytes), row["pieces"][i].get<std::string>())
          << row.dump() << " piece " << i;
    }
    EXPECT_EQ(assembler.Finish(), row["flush"].get<std::string>()) << row.dump();
  }
}

}  // namespace
}  // namespace trireme::text
