#include "runtime/text/normalizer.h"

#include "gtest/gtest.h"
#include "tests/runtime/text/tokenizer_parts_test_support.h"

namespace trireme::text {
namespace {

TEST(Normalizer, GivesTheTextsOfTheReferenceForEveryComponent) {
  const std::vector<nlohmann::json> rows = ComponentRows("normalizer");
  EXPECT_EQ(rows.size(), 21u);
  for (const nlohmann::json& row : rows) {
    const auto normalizer = Normalizer::Create(row["spec"], "normalizer");
    ASSERT_TRUE(normalizer.ok()) << row["spec"] << normalizer.status();
    for (size_t i = 0; i < row["in"].size(); ++i) {
      const auto text = normalizer->Normalize(row["in"][i].get<std::string>());
      ASSERT_TRUE(text.ok()) << text.status();
      EXPECT_EQ(*text, row["out"][i].get<std::string>()) << row["spec"] << row["in"][i];
    }
  }
}

TEST(Normalizer, LeavesOutWhatHappensAtTheEndsInTheMiddleOfAText) {
  const auto normalizer =
      Normalizer::Create(nlohmann::json::parse(R"({"type": "Sequence", "normalizers": [
          {"type": "Strip"}, {"type": "Prepend", "prepend": "_"}, {"type": "Lowercase"}]})"),
                         "normalizer");
  ASSERT_TRUE(normalizer.ok());
  EXPECT_EQ(*normalizer->Normalize(" A "), "_a");
  EXPECT_EQ(*normalizer->Normalize(" A ", NormalizedPart::kMiddle), " a ");
}

TEST(Normalizer, ReplacesFromTheLeftWhatDoesNotOverlap) {
  const auto normalizer = Normalizer::Create(
      nlohmann::json::parse(R"({"type": "Replace", "pattern": {"String": "aba"}, "content": "-"})"),
      "normalizer");
  ASSERT_TRUE(normalizer.ok());
  EXPECT_EQ(*normalizer->Normalize("ababa aab aaba ab"), "-ba aab a- ab");
  EXPECT_EQ(*normalizer->Normalize(""), "");
}

TEST(Normalizer, RefusesWhatItDoesNotKnowByItsPlace) {
  const auto unknown = Normalizer::Create(
      nlohmann::json::parse(
          R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Nmt"}]})"),
      "normalizer");
  EXPECT_NE(unknown.status().message().find("normalizer.normalizers[1].type is \"Nmt\""),
            std::string::npos)
      << unknown.status();
  const auto no_pattern =
      Normalizer::Create(nlohmann::json::parse(R"({"type": "Replace", "content": ""})"), "n");
  EXPECT_NE(no_pattern.status().message().find("n.pattern is missing"), std::string::npos);
}

}  // namespace
}  // namespace trireme::text
