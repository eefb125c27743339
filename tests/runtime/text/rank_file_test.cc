#include "runtime/text/rank_file.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trireme::text {
namespace {

using testing::HasSubstr;

std::string Line(absl::string_view token, int64_t rank) {
  return absl::StrCat(absl::Base64Escape(token), " ", rank, "\n");
}

// The 256 bytes, with their own values as ranks.
std::string Bytes() {
  std::string file;
  for (int byte = 0; byte < 256; ++byte) {
    file += Line(std::string(1, static_cast<char>(byte)), byte);
  }
  return file;
}

std::string Error(const std::string& file) {
  const auto tokens = ReadRankFile(file);
  EXPECT_FALSE(tokens.ok());
  return std::string(tokens.status().message());
}

TEST(RankFile, ReadsTokensInAnyOrder) {
  const auto tokens = ReadRankFile(Line("low", 257) + "\n" + Bytes() + "bG8= 256\r\n");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  ASSERT_EQ(tokens->size(), 258U);
  EXPECT_EQ((*tokens)[10], "\n");
  EXPECT_EQ((*tokens)[256], "lo");
  EXPECT_EQ((*tokens)[257], "low");
}

TEST(RankFile, IsKnownByItsFirstLine) {
  EXPECT_TRUE(IsRankFile("IQ== 0\nIg== 1\n"));
  EXPECT_TRUE(IsRankFile("IQ== 0"));
  EXPECT_FALSE(IsRankFile(""));
  EXPECT_FALSE(IsRankFile("{\"model\": {}}"));
  EXPECT_FALSE(IsRankFile("\n\x07\n\x05<unk>"));  // SentencePiece
  EXPECT_FALSE(IsRankFile("hello world\n"));
}

TEST(RankFile, C9_NamesTheLineThatIsWrong) {
  EXPECT_THAT(Error(Bytes() + "b!8= 256\n"), HasSubstr("line 257 is \"b!8= 256\""));
  EXPECT_THAT(Error(Bytes() + "bG8=\n"), HasSubstr("line 257 is \"bG8=\""));
  EXPECT_THAT(Error(Bytes() + " 256\n"), HasSubstr("line 257"));
  EXPECT_THAT(Error(Bytes() + "bG8= -1\n"), HasSubstr("line 257 has the rank \"-1\""));
  EXPECT_THAT(Error(Bytes() + "bG8= 99999999999999999999\n"), HasSubstr("line 257 has the rank"));
  EXPECT_THAT(Error(Bytes() + Line("lo", 255)),
              HasSubstr("line 257 has the rank 255, which line 256 has too"));
  EXPECT_THAT(Error(Bytes() + Line("lo", 257)), HasSubstr("a rank is missing"));
  EXPECT_THAT(Error(Bytes() + Line("lo", 256) + Line("lo", 257)),
              HasSubstr("the ranks 256 and 257 have the same token"));
  EXPECT_THAT(Error(Bytes() + Line(std::string(513, 'a'), 256)),
              HasSubstr("line 257 has a token of 513 bytes, over 512"));
  EXPECT_THAT(Error(Line("a", 0)), HasSubstr("the byte 0x00 is none of the 1 tokens"));
}

}  // namespace
}  // namespace trireme::text
