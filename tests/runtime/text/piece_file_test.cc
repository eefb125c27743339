#include "runtime/text/piece_file.h"

#include <cstring>

#include "gtest/gtest.h"
#include "tests/runtime/text/piece_file_test_support.h"

namespace trireme::text {
namespace {

TEST(PieceFile, ReadsPiecesAndOptions) {
  std::string file = PieceMessage("<unk>", 0, 2) + PieceMessage("<s>", 0, 3) +
                     PieceMessage("</s>", 0, 3) + PieceMessage("a", -1.5f, 1);
  file += WireBytes(2, WireVarint(3, 2) + WireVarint(35, 1) + WireVarint(41, ~uint64_t{0}));
  file += WireBytes(3, WireVarint(3, 0) + WireVarint(4, 0) + WireBytes(2, "map"));
  const auto read = ReadPieceFile(file);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->kind, PieceFile::Kind::kPairs);
  EXPECT_EQ(read->pieces, (std::vector<std::string>{"<unk>", "<s>", "</s>", "a"}));
  EXPECT_EQ(read->scores[3], -1.5f);
  EXPECT_EQ(read->token_types, (std::vector<int32_t>{2, 3, 3, 1}));
  EXPECT_TRUE(read->falls_back_to_bytes);
  EXPECT_EQ(read->bos_id, -1);
  EXPECT_FALSE(read->adds_prefix_space || read->removes_extra_spaces);
  EXPECT_EQ(read->precompiled_map, "map");
}

TEST(PieceFile, C9_RefusesEveryCutOfAFile) {
  const std::string file = PieceMessage("<unk>", 0, 2) + PieceMessage("long piece", -1.5f, 1) +
                           WireBytes(2, WireVarint(3, 1)) + WireBytes(3, WireVarint(3, 0));
  EXPECT_TRUE(ReadPieceFile(file).ok());
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ReadPieceFile(file.substr(0, size)).ok()) << size;
  }
}

TEST(PieceFile, RefusesWhatItDoesNotSupport) {
  const std::string piece = PieceMessage("<unk>", 0, 2);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [file, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "no pieces"},
           {piece + WireBytes(2, WireVarint(3, 3)), "model type is 3"},
           {piece + WireBytes(2, WireVarint(24, 1)), "treat_whitespace_as_suffix"},
           {piece + WireBytes(3, WireVarint(5, 0)), "escape_whitespaces"},
           {piece + WireBytes(2, WireVarint(40, 7)), "unk_id is 7"},
           {piece + piece, "there twice"},
           {piece + PieceMessage("a", nan, 1), "no number"},
           {piece + PieceMessage("a", 0, 7), "type 7"},
           {piece + PieceMessage("\xff", 0, 1), "not UTF-8"},
           {piece + "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "at byte"},
           {piece + std::string("\x0b", 1), "unknown wire type"}}) {
    EXPECT_NE(ReadPieceFile(file).status().message().find(words), std::string::npos)
        << words << ": " << ReadPieceFile(file).status();
  }
}

}  // namespace
}  // namespace trireme::text
