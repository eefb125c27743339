// Rank files out of the fixtures: the ranks of published vocabularies, taken from the
// tokenizer.json or the GGUF file that holds them, must give the ids of the engines that those
// files are read by.
#include "runtime/text/rank_vocabulary.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/text/byte_level.h"
#include "runtime/text/detokenizer.h"
#include "runtime/text/rank_file.h"
#include "runtime/text/tokenizer.h"
#include "tests/runtime/text/fixture_files.h"

namespace trireme::text {
namespace {

using Ids = std::vector<int32_t>;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// The tokens "a", "b", ... of one byte each, and then others.
std::vector<std::string> Tokens(const std::vector<std::string>& others) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    tokens.emplace_back(1, static_cast<char>(byte));
  }
  tokens.insert(tokens.end(), others.begin(), others.end());
  return tokens;
}

RankFamily TinyFamily() {
  return {.name = "tiny", .pre_tokenizer = "gpt-2", .special_tokens = {"<|end|>"}};
}

TEST(RankVocabulary, MergesThePairThatJoinsToTheLowestRank) {
  const auto data = MakeRankVocabulary(Tokens({"bc", "ab", "abcd", "cd"}), TinyFamily(), {});
  ASSERT_TRUE(data.ok()) << data.status();
  const auto tokenizer = Tokenizer::Create(*data);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto encode = [&tokenizer](absl::string_view text) {
    return *(*tokenizer)->Encode(text, SpecialTokens::kParse, /*add_bos=*/true);
  };
  EXPECT_THAT(encode("xbc"), ElementsAre('x', 256));
  EXPECT_THAT(encode("xabc"), ElementsAre('x', 'a', 256));        // bc before ab
  EXPECT_THAT(encode("abcd"), ElementsAre(258));                  // a whole word needs no merges
  EXPECT_THAT(encode("xabcd"), ElementsAre('x', 'a', 256, 'd'));  // then nothing joins
  EXPECT_THAT(encode("ab<|end|>"), ElementsAre(257, 260));
  EXPECT_TRUE((*tokenizer)->IsControl(260));
  EXPECT_TRUE((*tokenizer)->IsEndOfGeneration(260));
}

TEST(RankVocabulary, TakesTheAddedTokensOfTheConfig) {
  TokenizerSettings settings;
  settings.added_tokens = {{259, "[BOS]", true}, {257, "<think>", false}};
  settings.bos_text = "[BOS]";
  settings.add_bos = true;
  const auto data = MakeRankVocabulary(Tokens({"ab"}), TinyFamily(), settings);
  ASSERT_TRUE(data.ok()) << data.status();
  const auto tokenizer = Tokenizer::Create(*data);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocabulary_size(), 260);
  EXPECT_THAT(*(*tokenizer)->Encode("ab<think>[BOS]", SpecialTokens::kParse, /*add_bos=*/true),
              ElementsAre(259, 256, 257, 259));
  EXPECT_FALSE((*tokenizer)->IsControl(257));
}

TEST(RankVocabulary, C9_RefusesAddedTokensAmongTheRanks) {
  const auto error = [](int64_t id) {
    TokenizerSettings settings;
    settings.added_tokens = {{300, "x", true}, {id, "y", true}};
    return std::string(
        MakeRankVocabulary(Tokens({"ab"}), TinyFamily(), settings).status().message());
  };
  EXPECT_THAT(error(256), HasSubstr("has the id 256; there are 257 ranks"));
  EXPECT_THAT(error(-1), HasSubstr("has the id -1"));
  EXPECT_THAT(error(int64_t{1} << 31), HasSubstr("has the id 2147483648"));
  EXPECT_THAT(error(300), HasSubstr("has the id 300 twice"));
  EXPECT_EQ(error(301), "");
}

TEST(RankVocabulary, KnowsPublishedOnesByTheirNumberOfRanks) {
  const auto tokens = [](size_t ranks) { return FindRankFamily(ranks)->special_tokens; };
  EXPECT_EQ(tokens(128000).size(), 256U);
  EXPECT_EQ(tokens(128000)[255], "<|reserved_special_token_247|>");
  EXPECT_EQ(tokens(151643)[151645 - 151643], "<|im_end|>");
  // openai/harmony's numbers.
  EXPECT_EQ(tokens(199998)[200012 - 199998], "<|call|>");
  EXPECT_EQ(tokens(199998)[200018 - 199998], "<|endofprompt|>");
  EXPECT_EQ(tokens(199998).size(), 201088U - 199998U);
  const auto unknown = FindRankFamily(128001);
  EXPECT_THAT(unknown.status().message(), HasSubstr("a rank file of 128001 tokens"));
  EXPECT_THAT(unknown.status().message(), HasSubstr("128000 (Llama 3)"));
}

std::string BytesOf(const std::string& token) { return DecodeByteLevel(token).bytes; }

// The rank file of the ids below `ranks`.
std::string RankFileOf(const std::vector<std::string>& tokens, size_t ranks) {
  std::string file;
  for (size_t rank = 0; rank < ranks; ++rank) {
    absl::StrAppend(&file, absl::Base64Escape(BytesOf(tokens[rank])), " ", rank, "\n");
  }
  return file;
}

void ExpectCases(const Tokenizer& tokenizer, const json& file) {
  for (const auto& row : file["cases"]) {
    const std::string text = row["text"];
    const Ids ids = row["ids"];
    EXPECT_EQ(*tokenizer.Encode(text, SpecialTokens::kParse, /*add_bos=*/false), ids)
        << absl::CHexEscape(text);
    EXPECT_EQ(*Decode(tokenizer, ids, SpecialTokenDisplay::kShow),
              row.contains("decoded") ? row["decoded"].get<std::string>() : text)
        << absl::CHexEscape(text);
  }
}

std::vector<std::string> TokensOfJson(const json& file) {
  std::vector<std::string> tokens(file["model"]["vocab"].size());
  for (const auto& [token, id] : file["model"]["vocab"].items()) {
    tokens.at(id.get<size_t>()) = token;
  }
  return tokens;
}

TEST(PublishedRanks, OfLlama3GiveTheIdsOfItsTokenizerJson) {
  const auto path = FindFixture("tokenizers/llama3-full/tokenizer.json");
  if (!path.has_value()) {
    GTEST_SKIP();
  }
  const json file = ReadJson(*path);
  const auto tokenizer =
      Tokenizer::CreateFromRanks(RankFileOf(TokensOfJson(file), 128000), TokenizerSettings());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (const auto& token : file["added_tokens"]) {
    EXPECT_EQ((*tokenizer)->TokenText(token["id"]), token["content"].get<std::string>());
  }
  const json cases = ReadJson(*FindFixture("tokenizers/llama3-full/cases.json"));
  ExpectCases(**tokenizer, cases);
  EXPECT_EQ(*(*tokenizer)->Encode("", SpecialTokens::kParse, /*add_bos=*/true),
            cases["prefix_ids"].get<Ids>());
}

TEST(PublishedRanks, OfGpt2GiveTheIdsOfItsGguf) {
  const auto path = FindFixture("tokenizers/gpt2/tokenizer.gguf");
  if (!path.has_value()) {
    GTEST_SKIP();
  }
  const auto tokenizer =
      Tokenizer::CreateFromRanks(RankFileOf(ReadVocabulary(*path).tokens, 50256), {});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  ExpectCases(**tokenizer, ReadJson(*FindFixture("tokenizers/gpt2/cases.gguf.json")));
}

// Of these the fixtures have the first ranks only; the GGUF files of them do not normalize.
TEST(PublishedRanks, OfQwenAndO200kGiveTheIdsOfTheirFiles) {
  const std::pair<std::string, size_t> kCut[] = {{"qwen2-cut", 151643}, {"o200k-cut", 199998}};
  for (const auto& [name, ranks] : kCut) {
    const auto path = FindFixture(absl::StrCat("tokenizers/", name, "/tokenizer.json"));
    if (!path.has_value()) {
      GTEST_SKIP();
    }
    const json file = ReadJson(*path);
    TokenizerSettings settings;
    for (const auto& token : file["added_tokens"]) {
      settings.added_tokens.push_back({token["id"], token["content"], token["special"]});
    }
    const auto tokens = ReadRankFile(RankFileOf(TokensOfJson(file), 6000));
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    const auto data = MakeRankVocabulary(*tokens, *FindRankFamily(ranks), settings);
    ASSERT_TRUE(data.ok()) << data.status();
    const auto tokenizer = Tokenizer::Create(*data);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    ExpectCases(**tokenizer,
                ReadJson(*FindFixture(absl::StrCat("tokenizers/", name, "/cases.gguf.json"))));
  }
}

}  // namespace
}  // namespace trireme::text
