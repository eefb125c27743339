#include "runtime/text/vocabulary.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/fixture_files.h"

namespace trireme::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

VocabularyData ThreeTokens() {
  VocabularyData data;
  data.model = "gpt2";
  data.tokens = {"a", "b", "<end>"};
  data.token_types = {1, 1, 3};
  return data;
}

std::string ErrorOf(VocabularyData data) {
  const auto vocabulary = Vocabulary::Create(std::move(data), {});
  EXPECT_EQ(vocabulary.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(vocabulary.status().message());
}

TEST(Vocabulary, RefusesNoTokens) {
  EXPECT_THAT(ErrorOf(VocabularyData()), HasSubstr("tokenizer.ggml.tokens"));
}

TEST(Vocabulary, RefusesListsOfAnotherLength) {
  VocabularyData data = ThreeTokens();
  data.token_types.pop_back();
  EXPECT_THAT(ErrorOf(data), HasSubstr("token_type has 2 entries for 3 tokens"));
  data.token_types = {1, 1, 1, 1};
  EXPECT_THAT(ErrorOf(data), HasSubstr("token_type has 4 entries for 3 tokens"));
  data = ThreeTokens();
  data.scores = {0.0f};
  EXPECT_THAT(ErrorOf(data), HasSubstr("scores has 1 entries for 3 tokens"));
}

TEST(Vocabulary, RefusesUnknownTokenTypes) {
  VocabularyData data = ThreeTokens();
  data.token_types[1] = 99;
  EXPECT_THAT(ErrorOf(data), HasSubstr("token_type of token 1 is 99"));
  data.token_types[1] = -1;
  EXPECT_THAT(ErrorOf(data), HasSubstr("token_type of token 1 is -1"));
}

TEST(Vocabulary, RefusesTwoTokensOfEqualTextUnlessEmpty) {
  VocabularyData data = ThreeTokens();
  data.tokens[1] = "a";
  EXPECT_THAT(ErrorOf(data), HasSubstr("duplicate token, ids 0 and 1 are both \"a\""));
  data.tokens = {"", "", "x"};
  EXPECT_TRUE(Vocabulary::Create(data, {}).ok());
}

TEST(Vocabulary, RefusesTextThatIsNotUtf8) {
  VocabularyData data = ThreeTokens();
  data.tokens[1] = "\xff\xfe";
  EXPECT_THAT(ErrorOf(data), HasSubstr("of token 1 is not UTF-8"));
}

TEST(Vocabulary, RefusesSpecialIdsPastTheVocabulary) {
  VocabularyData data = ThreeTokens();
  data.bos_id = 3;
  EXPECT_THAT(ErrorOf(data), HasSubstr("bos_token_id is 3, but the vocabulary has tokens 0 to 2"));
  data = ThreeTokens();
  data.eos_id = int64_t{1} << 31;
  EXPECT_THAT(ErrorOf(data), HasSubstr("eos_token_id is 2147483648"));
}

TEST(Vocabulary, DropsAPaddingIdPastTheVocabulary) {
  VocabularyData data = ThreeTokens();
  data.padding_id = (int64_t{1} << 32) - 1;
  const auto vocabulary = Vocabulary::Create(data, {});
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_FALSE((*vocabulary)->padding_id().has_value());
}

TEST(Vocabulary, DropsDefaultIdsPastTheVocabulary) {
  VocabularyData data = ThreeTokens();
  VocabularyDefaults defaults;
  defaults.bos_id = 1;
  defaults.eos_id = 3;
  defaults.add_bos = true;
  const auto vocabulary = Vocabulary::Create(data, defaults);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ((*vocabulary)->bos_id(), 1);
  EXPECT_FALSE((*vocabulary)->eos_id().has_value());
  EXPECT_TRUE((*vocabulary)->adds_bos());
}

TEST(Vocabulary, AsksForTheBosThatItShallAdd) {
  VocabularyData data = ThreeTokens();
  data.add_bos = true;
  EXPECT_THAT(ErrorOf(data), HasSubstr("bos_token_id"));
}

TEST(Vocabulary, FindsOrdinaryTokensOnlyAmongThoseThatTextMayBecome) {
  const auto vocabulary = Vocabulary::Create(ThreeTokens(), {});
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ((*vocabulary)->Find("<end>"), 2);
  EXPECT_EQ((*vocabulary)->FindOrdinary("<end>"), -1);
  EXPECT_EQ((*vocabulary)->FindOrdinary("b"), 1);
  EXPECT_EQ((*vocabulary)->Find("c"), -1);
}

TEST(Vocabulary, EndsGenerationAtNamedIdsAndAtControlTokensOfKnownSpelling) {
  VocabularyData data;
  data.tokens = {"a", "<|im_end|>", "</s>", "stop", "<|end|>"};
  data.token_types = {1, 3, 4, 1, 3};  // "</s>" is user-defined here: an HTML tag
  data.eot_id = 3;
  const auto vocabulary = Vocabulary::Create(data, {});
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_THAT((*vocabulary)->end_of_generation_ids(), ElementsAre(1, 3, 4));
}

TEST(Vocabulary, GoesOnAfterEndOfMessageInHarmony) {
  VocabularyData data;
  data.tokens = {"<|end|>", "<|return|>", "<|call|>"};
  data.token_types = {3, 3, 3};
  const auto vocabulary = Vocabulary::Create(data, {});
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_THAT((*vocabulary)->end_of_generation_ids(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace trireme::text
