#include "runtime/text/sentence_piece_encoder.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trireme::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kMark[] = "\xe2\x96\x81";

// Ids 0 to 2 are <unk>, <s> and </s>; 3 the space mark, 4 a, 5 b, 6 c, 7 ab, 8 bc, 9 mark a, 10
// abc; then the bytes C3 and A9, which are those of e acute.
VocabularyData SmallVocabulary() {
  VocabularyData data;
  data.model = "llama";
  data.tokens = {"<unk>", "<s>",    "</s>",  kMark, "a",
                 "b",     "c",      "ab",    "bc",  std::string(kMark) + "a",
                 "abc",   "<0xC3>", "<0xA9>"};
  data.token_types = {2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 6, 6};
  data.scores = {0, 0, 0, -9, -9, -9, -9, -1, -0.5, -2, -3, 0, 0};
  data.unknown_id = 0;
  return data;
}

struct Built {
  std::unique_ptr<Vocabulary> vocabulary;
  std::unique_ptr<SentencePieceEncoder> encoder;
  absl::Status status;
};

Built Build(VocabularyData data) {
  Built built;
  built.vocabulary = Vocabulary::Create(std::move(data), {}).value();
  auto encoder = SentencePieceEncoder::Create(*built.vocabulary);
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

TEST(SentencePieceEncoder, MergesByHighestScore) {
  const Built built = Build(SmallVocabulary());
  ASSERT_TRUE(built.status.ok()) << built.status;
  EXPECT_THAT(Ids(built, "abc"), ElementsAre(9, 8));  // bc first, then mark a; abc is never formed
  EXPECT_THAT(Ids(built, "ab"), ElementsAre(3, 7));
}

TEST(SentencePieceEncoder, SpellsUnknownCharactersInBytes) {
  EXPECT_THAT(Ids(Build(SmallVocabulary()), "\xc3\xa9"), ElementsAre(3, 11, 12));
}

TEST(SentencePieceEncoder, UsesTheUnknownTokenWhereByteTokensAreMissing) {
  VocabularyData data = SmallVocabulary();
  EXPECT_THAT(Ids(Build(data), "\xc3\xa8"), ElementsAre(3, 0));
  data.unknown_id = std::nullopt;
  std::vector<int32_t> ids;
  const Built built = Build(data);
  EncodedWords words;
  EXPECT_THAT(std::string(built.encoder->Encode("\xc3\xa8", &words, &ids).message()),
              HasSubstr("U+00E8"));
}

TEST(SentencePieceEncoder, PutsNoSpaceInFrontWhenTheVocabularySaysSo) {
  VocabularyData data = SmallVocabulary();
  data.add_space_prefix = false;
  EXPECT_THAT(Ids(Build(data), "a a"), ElementsAre(4, 9));
}

TEST(SentencePieceEncoder, MergesAcrossASpaceWhereATokenDoes) {
  VocabularyData data = SmallVocabulary();
  data.add_space_prefix = false;
  EXPECT_THAT(Ids(Build(data), "ab ab"), ElementsAre(7, 3, 7));
  data.tokens.push_back(std::string("ab") + kMark + "a");  // 13, of "ab" and "mark a"
  data.token_types.push_back(1);
  data.scores.push_back(-0.1F);
  data.scores[7] = -3;  // so that "mark a" comes before the second "ab"
  EXPECT_THAT(Ids(Build(data), "ab ab"), ElementsAre(13, 5));
  EXPECT_THAT(Ids(Build(data), "ab ab ab"), ElementsAre(13, 5, 9, 5));
}

// The word " b" of the first text is kept, and another thing behind the space put before the
// second.
TEST(SentencePieceEncoder, SharesWordsBetweenTheStretchesOfACall) {
  const Built built = Build(SmallVocabulary());
  EncodedWords words;
  std::vector<int32_t> ids;
  ASSERT_TRUE(built.encoder->Encode("ab b b", &words, &ids).ok());
  EXPECT_THAT(ids, ElementsAre(3, 7, 3, 5, 3, 5));
  ASSERT_TRUE(built.encoder->Encode(" b b", &words, &ids).ok());
  EXPECT_THAT(ids, ElementsAre(3, 7, 3, 5, 3, 5, 3, 3, 5, 3, 5));
}

// The definition, without words: of all neighbours in the whole text that make a token the best one
// merges, the leftmost of equals, until none is left. Every character must be a token.
std::vector<int32_t> MergedPlainly(const Vocabulary& vocabulary, absl::string_view text) {
  std::vector<std::string> symbols;
  for (const char character : text) {
    symbols.push_back(character == ' ' ? kMark : std::string(1, character));
  }
  for (;;) {
    int32_t best = -1;
    size_t place = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const int32_t id = vocabulary.FindOrdinary(symbols[i] + symbols[i + 1]);
      const std::vector<float>& scores = vocabulary.data().scores;
      if (id >= 0 && (best < 0 || scores[id] > scores[best])) {
        best = id;
        place = i;
      }
    }
    if (best < 0) {
      break;
    }
    symbols[place] = vocabulary.Text(best);
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
  std::vector<int32_t> ids;
  for (const std::string& symbol : symbols) {
    ids.push_back(vocabulary.FindOrdinary(symbol));
  }
  return ids;
}

TEST(SentencePieceEncoder, GivesWhatMergingTheWholeTextGives) {
  std::mt19937 random(1);
  const std::string characters[] = {"a", "b", ".", kMark};
  for (int round = 0; round < 200; ++round) {
    VocabularyData data;
    data.model = "llama";
    data.add_space_prefix = false;
    std::set<std::string> tokens(std::begin(characters), std::end(characters));
    for (int i = 0; i < 12; ++i) {
      std::string token;
      for (int length = 2 + static_cast<int>(random() % 3); length > 0; --length) {
        token += characters[random() % 4];
      }
      tokens.insert(token);
    }
    for (const std::string& token : tokens) {
      data.tokens.push_back(token);
      data.token_types.push_back(1);
      data.scores.push_back(-static_cast<float>(random() % 6));
    }
    const Built built = Build(std::move(data));
    ASSERT_TRUE(built.status.ok()) << built.status;
    std::string text;
    for (int i = 0; i < 60; ++i) {
      text += "ab. "[random() % 4];
    }
    ASSERT_EQ(Ids(built, text), MergedPlainly(*built.vocabulary, text)) << text;
  }
}

TEST(SentencePieceEncoder, MergesCharactersThatAreNoTokensThemselves) {
  VocabularyData data = SmallVocabulary();
  data.tokens.push_back("xy");
  data.token_types.push_back(1);
  data.scores.push_back(-1);
  data.add_space_prefix = false;
  EXPECT_THAT(Ids(Build(data), "xy"), ElementsAre(13));
  EXPECT_THAT(Ids(Build(data), "x"), ElementsAre(0));
}

TEST(SentencePieceEncoder, NeverMakesControlOrByteTokensOutOfText) {
  VocabularyData data = SmallVocabulary();
  for (const char* text : {"<", "s", ">", "<s"}) {
    data.tokens.push_back(text);
    data.token_types.push_back(1);
    data.scores.push_back(-1);
  }
  data.add_space_prefix = false;
  EXPECT_THAT(Ids(Build(data), "<s>"), ElementsAre(16, 15));
}

TEST(SentencePieceEncoder, TurnsTokensIntoBytes) {
  const Built built = Build(SmallVocabulary());
  EXPECT_EQ(built.encoder->BytesOf(9), " a");
  EXPECT_EQ(built.encoder->BytesOf(11), "\xc3");
}

TEST(SentencePieceEncoder, RefusesMisspelledByteTokens) {
  for (const char* text : {"<0x-1>", "<0xG0>", "<0x1>", "<0xc3>", "byte"}) {
    VocabularyData data = SmallVocabulary();
    data.tokens[11] = text;
    EXPECT_THAT(std::string(Build(data).status.message()), HasSubstr(text));
    EXPECT_THAT(std::string(Build(data).status.message()), HasSubstr("token 11 has type byte"));
  }
}

TEST(SentencePieceEncoder, RefusesMissingScoresAndHugeTokens) {
  VocabularyData data = SmallVocabulary();
  data.scores.clear();
  EXPECT_THAT(std::string(Build(data).status.message()), HasSubstr("tokenizer.ggml.scores"));
  data = SmallVocabulary();
  data.tokens[4] = std::string(513, 'a');
  EXPECT_THAT(std::string(Build(data).status.message()), HasSubstr("token 4 has 513 bytes"));
}

}  // namespace
}  // namespace trireme::text
