#include "runtime/text/post_processor.h"

#include "gtest/gtest.h"
#include "tests/runtime/text/tokenizer_parts_test_support.h"

namespace trireme::text {
namespace {

TEST(PostProcessor, AddsTheTokensOfTheReferenceForEveryComponent) {
  const std::vector<nlohmann::json> rows = ComponentRows("post_processor");
  EXPECT_EQ(rows.size(), 11u);
  for (const nlohmann::json& row : rows) {
    const auto around = ReadPostProcessor(row["spec"], "post_processor", 6);
    ASSERT_TRUE(around.ok()) << row["spec"] << around.status();
    for (size_t i = 0; i < row["in"].size(); ++i) {
      std::vector<int32_t> ids = around->prefix_ids;
      for (const auto& id : row["out_without_special"][i]) {
        ids.push_back(id.get<int32_t>());
      }
      ids.insert(ids.end(), around->suffix_ids.begin(), around->suffix_ids.end());
      EXPECT_EQ(ids, row["out"][i].get<std::vector<int32_t>>()) << row["spec"];
    }
  }
}

TEST(PostProcessor, RefusesIdsPastTheVocabularyAndTemplatesWithoutAText) {
  const auto past = ReadPostProcessor(nlohmann::json::parse(R"({"type": "TemplateProcessing",
          "single": [{"SpecialToken": {"id": "Q"}}, {"Sequence": {"id": "A"}}],
          "special_tokens": {"Q": {"id": "Q", "ids": [6]}}})"),
                                      "p", 6);
  EXPECT_NE(past.status().message().find("has the id 6"), std::string::npos) << past.status();
  const auto no_text = ReadPostProcessor(
      nlohmann::json::parse(R"({"type": "TemplateProcessing", "single": []})"), "p", 6);
  EXPECT_NE(no_text.status().message().find("0 times"), std::string::npos) << no_text.status();
}

}  // namespace
}  // namespace trireme::text
