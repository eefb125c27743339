#include "runtime/text/byte_level_encoder.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/fixture_files.h"

namespace trireme::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Built {
  std::unique_ptr<Vocabulary> vocabulary;
  std::unique_ptr<ByteLevelEncoder> encoder;
  absl::Status status;
};

Built Build(VocabularyData data) {
  Built built;
  built.vocabulary = Vocabulary::Create(std::move(data), {}).value();
  auto encoder = ByteLevelEncoder::Create(*built.vocabulary, *FindPreTokenizerFamily("gpt-2"));
  built.status = encoder.status();
  if (encoder.ok()) {
    built.encoder = std::move(*encoder);
  }
  return built;
}

std::vector<int32_t> Ids(const Built& built, absl::string_view text) {
  std::vector<int32_t> ids;
  EncodedWords words;
  EXPECT_TRUE(built.encoder->Encode(text, &words, &ids).ok());
  return ids;
}

TEST(ByteLevelEncoder, MergesWithinWordsOnly) {
  const Built built =
      Build(MakeByteLevelVocabulary({"l o", "lo w", "e r", "low er", "w \xc4\xa0"}, {}));
  ASSERT_TRUE(built.status.ok()) << built.status;
  EXPECT_THAT(Ids(built, "lower"), ElementsAre(259));
  // "w" and the space before "er" are in different words.
  EXPECT_THAT(Ids(built, "low er"), ElementsAre(257, ' ', 258));
  EXPECT_EQ(built.encoder->BytesOf(260), "w ");
}

TEST(ByteLevelEncoder, TakesWholeWordsFirstWhenMergesAreIgnored) {
  VocabularyData data = MakeByteLevelVocabulary({"a b"}, {{"abc", TokenType::kNormal}});
  EXPECT_THAT(Ids(Build(data), "abc"), ElementsAre(256, 'c'));
  data.ignore_merges = true;
  EXPECT_THAT(Ids(Build(data), "abc"), ElementsAre(257));
}

TEST(ByteLevelEncoder, NeverMakesAControlTokenOutOfText) {
  VocabularyData data = MakeByteLevelVocabulary({"a b"}, {});
  data.token_types[256] = static_cast<int32_t>(TokenType::kControl);
  data.ignore_merges = true;
  EXPECT_THAT(Ids(Build(data), "ab"), ElementsAre('a', 'b'));
}

TEST(ByteLevelEncoder, DropsBytesThatHaveNoToken) {
  VocabularyData data = MakeByteLevelVocabulary({"a b"}, {});
  data.tokens[4] = "instead of byte 4";
  EXPECT_THAT(Ids(Build(data), "a\x04"), ElementsAre('a'));
}

// One word of a megabyte. Any part that is quadratic in the length of a word would take minutes.
TEST(ByteLevelEncoder, EncodesAMegabyteOfOneLetterAsOneWord) {
  const Built built = Build(MakeByteLevelVocabulary({"a a", "aa aa"}, {}));
  const std::vector<int32_t> ids = Ids(built, std::string((1 << 20) + 3, 'a'));
  ASSERT_EQ(ids.size(), (1u << 18) + 2);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 257), 1 << 18);
  EXPECT_EQ(ids[1 << 18], 256);
  EXPECT_EQ(ids.back(), 'a');
}

TEST(ByteLevelEncoder, RefusesMergesWithoutTwoParts) {
  VocabularyData data = MakeByteLevelVocabulary({"a b"}, {});
  data.merges = std::vector<std::string>{"a b", "on"};
  EXPECT_THAT(std::string(Build(data).status.message()), HasSubstr("merge 1 is \"on\""));
  data.merges = std::vector<std::string>{""};
  EXPECT_THAT(std::string(Build(data).status.message()), HasSubstr("merge 0 is \"\""));
  data.merges = std::nullopt;
  EXPECT_THAT(std::string(Build(data).status.message()), HasSubstr("tokenizer.ggml.merges"));
}

TEST(ByteLevelEncoder, LeavesOutMergesOfUnknownTokensAndKeepsTheRanksOfOthers) {
  VocabularyData data = MakeByteLevelVocabulary({"a b", "b c"}, {});
  data.merges = std::vector<std::string>{"zz q", "b c", "x y", "a b", "b c"};
  EXPECT_THAT(Ids(Build(data), "abc"), ElementsAre('a', 257));
}

}  // namespace
}  // namespace trireme::text
