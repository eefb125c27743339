#include "runtime/text/token_decoder.h"

#include "gtest/gtest.h"
#include "runtime/text/utf8.h"
#include "tests/runtime/text/tokenizer_parts_test_support.h"

namespace trireme::text {
namespace {

std::string DecodeTokens(const TokenDecoder& decoder, const nlohmann::json& tokens) {
  std::string bytes;
  for (size_t i = 0; i < tokens.size(); ++i) {
    bytes += decoder.BytesOf(tokens[i].get<std::string>(), i == 0);
  }
  for (int64_t i = 0; i < decoder.rules().leading_spaces && bytes.rfind(' ', 0) == 0; ++i) {
    bytes.erase(0, 1);
  }
  return ReplaceInvalidSubparts(bytes);
}

// The library makes one U+FFFD of each byte of a run that is not valid as a whole; ours makes one
// of each maximal invalid subpart, as streams need it (README of the fixture, 7).
bool IsInvalidRun(const nlohmann::json& out) {
  return out.get<std::string>().find("\xef\xbf\xbd") != std::string::npos;
}

TEST(TokenDecoder, GivesTheTextsOfTheReferenceForEveryComponent) {
  const std::vector<nlohmann::json> rows = ComponentRows("decoder");
  EXPECT_EQ(rows.size(), 14u);
  int checked = 0;
  for (const nlohmann::json& row : rows) {
    const auto decoder = TokenDecoder::Create(row["spec"], "decoder");
    ASSERT_TRUE(decoder.ok()) << row["spec"] << decoder.status();
    for (size_t i = 0; i < row["in"].size(); ++i) {
      const std::string text = DecodeTokens(*decoder, row["in"][i]);
      if (row["out"][i].is_string() && !IsInvalidRun(row["out"][i])) {
        EXPECT_EQ(text, row["out"][i].get<std::string>()) << row["spec"] << row["in"][i];
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 250);
}

TEST(TokenDecoder, RefusesWhatNeedsTheWholeText) {
  for (const char* spec :
       {R"({"type": "Sequence", "decoders": [{"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 0, "stop": 1}]})",
        R"({"type": "Sequence", "decoders": [{"type": "Fuse"},
            {"type": "Replace", "pattern": {"String": "ab"}, "content": ""}]})",
        R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]})"}) {
    const auto decoder = TokenDecoder::Create(nlohmann::json::parse(spec), "decoder");
    EXPECT_NE(decoder.status().message().find("streamed"), std::string::npos) << decoder.status();
  }
}

}  // namespace
}  // namespace trireme::text
