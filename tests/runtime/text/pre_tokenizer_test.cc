#include "runtime/text/pre_tokenizer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/fixture_files.h"

namespace trireme::text {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Words(absl::string_view name, absl::string_view text) {
  const auto pre_tokenizer = PreTokenizer::Create(name);
  EXPECT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status();
  const auto ends = (*pre_tokenizer)->Split(text);
  EXPECT_TRUE(ends.ok()) << ends.status();
  std::vector<std::string> words;
  size_t begin = 0;
  for (const size_t end : *ends) {
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

constexpr absl::string_view kText = "I'LL go\r\n\r\n  now,  12345";

TEST(PreTokenizer, CutsAsEachFamilyPublishes) {
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

TEST(PreTokenizer, KeepsSpacesBeforeTheLastOneApart) {
  EXPECT_THAT(Words("gpt-2", "  hello   world  "),
              ElementsAre(" ", " hello", "  ", " world", "  "));
}

TEST(PreTokenizer, FoldsTheLongSInContractions) {
  EXPECT_THAT(Words("llama-bpe", "it'\xc5\xbf"), ElementsAre("it", "'\xc5\xbf"));
  EXPECT_THAT(Words("gpt-2", "it'\xc5\xbf"), ElementsAre("it", "'", "\xc5\xbf"));
}

TEST(PreTokenizer, GivesNoWordsForNoText) { EXPECT_TRUE(Words("gpt-2", "").empty()); }

TEST(PreTokenizer, EqualsTheLibraryOnEveryFixtureText) {
  const auto path = FindFixture("tokenizers/parts/splits.json");
  if (!path.has_value()) {
    return;
  }
  const nlohmann::json file = ReadJson(*path);
  for (const auto& pattern : file["patterns"].items()) {
    const std::string& name = pattern.key();
    const auto pre_tokenizer = PreTokenizer::Create(name);
    ASSERT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status();
    for (const auto& row : file["cases"]) {
      const std::string text = row["text"];
      std::vector<uint32_t> wanted;
      for (const auto& bytes : row["splits"][name]) {
        wanted.push_back((wanted.empty() ? 0 : wanted.back()) + bytes.get<uint32_t>());
      }
      const auto ends = (*pre_tokenizer)->Split(text);
      ASSERT_TRUE(ends.ok()) << ends.status();
      EXPECT_EQ(*ends, wanted) << name << ": " << text;
    }
  }
}

}  // namespace
}  // namespace trireme::text
