#include "runtime/text/pre_tokenizer_families.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/text/pre_tokenizer_steps.h"
#include "tests/runtime/text/fixture_files.h"

namespace trireme::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PreTokenizerSteps StepsOf(absl::string_view name) {
  const auto family = FindPreTokenizerFamily(name);
  EXPECT_TRUE(family.ok()) << family.status();
  auto steps = PreTokenizerSteps::CreateFromPatterns(family->patterns);
  EXPECT_TRUE(steps.ok()) << steps.status();
  return *std::move(steps);
}

std::vector<std::string> Words(const PreTokenizerSteps& steps, absl::string_view text) {
  PieceList list = {.text = std::string(text), .pieces = {{0, static_cast<uint32_t>(text.size())}}};
  std::vector<std::string> words;
  const absl::Status status = steps.Apply(std::move(list), [&](const PieceList& batch) {
    for (const TextPiece& piece : batch.pieces) {
      words.emplace_back(text.substr(piece.begin, piece.end - piece.begin));
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return words;
}

std::vector<std::string> Words(absl::string_view name, absl::string_view text) {
  return Words(StepsOf(name), text);
}

TEST(PreTokenizerFamilies, OnlyLlama3AndTekkenNamesIgnoreMergesAndAddBos) {
  for (const char* name : {"llama-bpe", "llama3", "falcon3", "tekken"}) {
    ASSERT_TRUE(FindPreTokenizerFamily(name).ok()) << name;
    EXPECT_TRUE(FindPreTokenizerFamily(name)->traits.ignore_merges) << name;
    EXPECT_TRUE(FindPreTokenizerFamily(name)->traits.adds_bos) << name;
  }
  for (const char* name :
       {"gpt-2", "smollm", "qwen2", "dbrx", "gpt-4o", "deepseek-v3", "default"}) {
    ASSERT_TRUE(FindPreTokenizerFamily(name).ok()) << name;
    EXPECT_FALSE(FindPreTokenizerFamily(name)->traits.ignore_merges) << name;
    EXPECT_FALSE(FindPreTokenizerFamily(name)->traits.adds_bos) << name;
  }
}

TEST(PreTokenizerFamilies, RefusesUnknownNamesByName) {
  const absl::Status status = FindPreTokenizerFamily("llama-9").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("llama-9"));
  EXPECT_EQ(FindPreTokenizerFamily("deepseek-llm").status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(PreTokenizerFamilies, TakesTheDefaultForAMissingName) {
  ASSERT_TRUE(FindPreTokenizerFamily("").ok());
  EXPECT_EQ(FindPreTokenizerFamily("")->names, FindPreTokenizerFamily("default")->names);
}

constexpr absl::string_view kText = "I'LL go\r\n\r\n  now,  12345";

TEST(PreTokenizerFamilies, CutsAsEachFamilyPublishes) {
  EXPECT_THAT(Words("gpt-2", kText),
              ElementsAre("I", "'", "LL", " go", "\r\n\r\n ", " now", ",", " ", " 12345"));
  EXPECT_THAT(Words("llama-bpe", kText),
              ElementsAre("I", "'LL", " go", "\r\n\r\n", " ", " now", ",", " ", " ", "123", "45"));
  EXPECT_THAT(Words("smollm", kText), ElementsAre("I", "'", "LL", " go", "\r\n\r\n ", " now", ",",
                                                  "  ", "1", "2", "3", "4", "5"));
  EXPECT_THAT(Words("gpt-4o", kText),
              ElementsAre("I'LL", " go", "\r\n\r\n", " ", " now", ",", " ", " ", "123", "45"));
  EXPECT_THAT(Words("deepseek-v3", kText),
              ElementsAre("I", "'LL", " go", "\r\n\r\n", " ", " now", ",", "  ", "123", "45"));
}

TEST(PreTokenizerFamilies, KeepsSpacesBeforeTheLastOneApart) {
  EXPECT_THAT(Words("gpt-2", "  hello   world  "),
              ElementsAre(" ", " hello", "  ", " world", "  "));
}

TEST(PreTokenizerFamilies, FoldsTheLongSInContractions) {
  EXPECT_THAT(Words("llama-bpe", "it'\xc5\xbf"), ElementsAre("it", "'\xc5\xbf"));
  EXPECT_THAT(Words("gpt-2", "it'\xc5\xbf"), ElementsAre("it", "'", "\xc5\xbf"));
}

TEST(PreTokenizerFamilies, GivesNoWordsForNoText) { EXPECT_TRUE(Words("gpt-2", "").empty()); }

TEST(PreTokenizerFamilies, EqualsTheLibraryOnEveryFixtureText) {
  const auto path = FindFixture("tokenizers/parts/splits.json");
  if (!path.has_value()) {
    return;
  }
  const nlohmann::json file = ReadJson(*path);
  for (const auto& pattern : file["patterns"].items()) {
    const std::string& name = pattern.key();
    const PreTokenizerSteps steps = StepsOf(name);
    for (const auto& row : file["cases"]) {
      const std::string text = row["text"];
      std::vector<size_t> bytes;
      for (const std::string& word : Words(steps, text)) {
        bytes.push_back(word.size());
      }
      EXPECT_EQ(bytes, row["splits"][name].get<std::vector<size_t>>()) << name << ": " << text;
    }
  }
}

}  // namespace
}  // namespace trireme::text
