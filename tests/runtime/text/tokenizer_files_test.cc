#include "runtime/text/tokenizer_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/piece_file_test_support.h"

namespace trireme::text {
namespace {

class TokenizerFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tokenizer_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }

  std::string folder_;
};

constexpr char kTinyJson[] = R"({"added_tokens": [{"id": 1, "content": "<e>", "special": true}],
    "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";

TEST_F(TokenizerFilesTest, AFolderSaysWhatTheTokenizerDoesNot) {
  Write("tokenizer.json", kTinyJson);
  Write(
      "tokenizer_config.json",
      R"({"eos_token": {"content": "<e>"}, "chat_template": [{"name": "tool_use", "template": "T"},
            {"name": "default", "template": "D"}]})");
  Write("generation_config.json", R"({"eos_token_id": [0, 1]})");
  auto tokenizer = OpenTokenizer(folder_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->eos_id(), 1);
  EXPECT_EQ((*tokenizer)->chat_template(), "D");
  EXPECT_TRUE((*tokenizer)->IsEndOfGeneration(0));
  Write("chat_template.jinja", "J");
  tokenizer = OpenTokenizer(folder_);
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ((*tokenizer)->chat_template(), "J");
}

std::string RankLine(absl::string_view token, int64_t rank) {
  return absl::StrCat(absl::Base64Escape(token), " ", rank, "\n");
}

// As many tokens as GPT-2 has: the bytes, and two of them in all ways.
std::string RanksLikeGpt2() {
  std::string file;
  for (int rank = 0; rank < 50256; ++rank) {
    const auto low = static_cast<char>(rank % 256);
    const auto high = static_cast<char>(rank / 256 - 1);
    file += RankLine(rank < 256 ? std::string(1, low) : std::string({high, low}), rank);
  }
  return file;
}

TEST_F(TokenizerFilesTest, RankFilesAreFoundByTheirNamesAndKnownByTheirContent) {
  Write("b.tiktoken", "");
  Write("a.tiktoken", RanksLikeGpt2());
  EXPECT_EQ(FindTokenizerFile(folder_), folder_ + "/a.tiktoken");
  auto tokenizer = OpenTokenizer(folder_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocabulary_size(), 50257);
  EXPECT_EQ((*tokenizer)->eos_id(), 50256);
  Write("tokenizer_config.json", R"({"eos_token": "<e>", "added_tokens_decoder": {
      "50300": {"content": "<e>", "special": true}}})");
  Write("tokenizer.model", RanksLikeGpt2());
  EXPECT_EQ(FindTokenizerFile(folder_), folder_ + "/tokenizer.model");
  tokenizer = OpenTokenizer(folder_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->eos_id(), 50300);
  EXPECT_EQ((*tokenizer)->vocabulary_size(), 50301);
}

TEST_F(TokenizerFilesTest, ATokenizerModelGetsItsFirstTokenFromTheConfig) {
  Write("tokenizer.model", PieceMessage("<unk>", 0, 2) + PieceMessage("<s>", 0, 3) +
                               PieceMessage("</s>", 0, 3) + PieceMessage("a", -1, 1) +
                               WireBytes(2, "") + WireBytes(3, ""));
  auto tokenizer = OpenTokenizer(folder_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_FALSE((*tokenizer)->adds_bos());
  Write("tokenizer_config.json", R"({"add_bos_token": true})");
  tokenizer = OpenTokenizer(folder_);
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_TRUE((*tokenizer)->adds_bos());
}

TEST_F(TokenizerFilesTest, ErrorsNameTheFile) {
  EXPECT_EQ(OpenTokenizer(folder_).status().code(), absl::StatusCode::kNotFound);
  Write("tokenizer.json", kTinyJson);
  Write("generation_config.json", R"({"eos_token_id": "x"})");
  const auto wrong = OpenTokenizer(folder_);
  EXPECT_NE(wrong.status().message().find("generation_config.json: eos_token_id is \"x\""),
            std::string::npos)
      << wrong.status();
  Write("tokenizer.json", "{");
  const auto broken = OpenTokenizer(folder_ + "/tokenizer.json");
  EXPECT_NE(broken.status().message().find("tokenizer.json: is no JSON"), std::string::npos)
      << broken.status();
}

}  // namespace
}  // namespace trireme::text
