#include "runtime/text/piece_file_pipeline.h"

#include "gtest/gtest.h"
#include "runtime/text/detokenizer.h"
#include "runtime/text/tokenizer.h"
#include "tests/runtime/text/piece_file_test_support.h"

namespace trireme::text {
namespace {

using PieceIds = std::vector<int32_t>;

// Spec, section 3: bc merges first, then the mark with a; abc is never formed.
std::string SmallModel(const std::string& normalizer) {
  std::string file =
      PieceMessage("<unk>", 0, 2) + PieceMessage("<s>", 0, 3) + PieceMessage("</s>", 0, 3) +
      PieceMessage("\xe2\x96\x81", -9, 1) + PieceMessage("a", -9, 1) + PieceMessage("b", -9, 1) +
      PieceMessage("c", -9, 1) + PieceMessage("ab", -1, 1) + PieceMessage("bc", -0.5f, 1) +
      PieceMessage(
          "\xe2\x96\x81"
          "a",
          -2, 1) +
      PieceMessage("abc", -3, 1) + PieceMessage("<turn>", 0, 4);
  return file + WireBytes(2, WireVarint(3, 2)) + WireBytes(3, normalizer);
}

std::unique_ptr<Tokenizer> PieceTokenizer(const std::string& file,
                                          const TokenizerSettings& settings) {
  auto tokenizer = Tokenizer::CreateFromPieces(file, settings);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

const std::string& KeepSpaces() {
  static const auto* const spec = new std::string(WireVarint(4, 0));
  return *spec;
}

TEST(PieceFilePipeline, MergesByScoreBehindAPrefixSpace) {
  const auto tokenizer = PieceTokenizer(SmallModel(KeepSpaces()), {});
  EXPECT_EQ(*tokenizer->Encode("abc", SpecialTokens::kParse, true), (PieceIds{9, 8}));
  EXPECT_EQ(*tokenizer->Encode("ab", SpecialTokens::kParse, true), (PieceIds{3, 7}));
  EXPECT_EQ(*tokenizer->Encode("", SpecialTokens::kParse, true), PieceIds());
  EXPECT_EQ(*tokenizer->Encode("xyz", SpecialTokens::kParse, true), (PieceIds{3, 0}));
  EXPECT_EQ(*Decode(*tokenizer, PieceIds{3, 0, 4}, SpecialTokenDisplay::kHide), " \xe2\x81\x87 a");
}

TEST(PieceFilePipeline, CollapsesSpacesWhereTheFileSaysSo) {
  const auto tokenizer = PieceTokenizer(SmallModel(WireVarint(4, 1)), {});
  EXPECT_EQ(*tokenizer->Encode("  a  b ", SpecialTokens::kParse, true), (PieceIds{9, 3, 5}));
}

TEST(PieceFilePipeline, ParsesControlPiecesInTheTemplateOnly) {
  const auto tokenizer = PieceTokenizer(SmallModel(KeepSpaces()), {.chat_template = "<turn>"});
  EXPECT_EQ(*tokenizer->Encode("<s>a", SpecialTokens::kParse, true), (PieceIds{3, 0, 9 - 5}));
  const std::vector<TextSegment> segments = {{"<s>", true}, {"a<s>", false}, {"<turn>", true}};
  const PieceIds ids = *tokenizer->EncodeSegments(segments, true);
  EXPECT_EQ(ids, (PieceIds{1, 9, 0, 11}));
}

TEST(PieceFilePipeline, UsersCannotWriteTheTurnMarkersOfTheTemplate) {
  const auto with_template =
      PieceTokenizer(SmallModel(KeepSpaces()), {.chat_template = "<turn>{{ x }}"});
  const auto without = PieceTokenizer(SmallModel(KeepSpaces()), {});
  const std::vector<TextSegment> user = {{"<turn>", false}};
  EXPECT_EQ(*with_template->EncodeSegments(user, true), (PieceIds{3, 0}));
  EXPECT_EQ(*without->EncodeSegments(user, true), (PieceIds{3, 11}));
}

TEST(PieceFilePipeline, RefusesUnusedPiecesAndByteFallbackWithoutBytes) {
  const std::string unused = SmallModel(KeepSpaces()) + PieceMessage("q", 0, 5);
  EXPECT_NE(Tokenizer::CreateFromPieces(unused, {}).status().message().find("unused"),
            std::string::npos);
  const std::string bytes = SmallModel(KeepSpaces()) + WireBytes(2, WireVarint(35, 1));
  EXPECT_NE(Tokenizer::CreateFromPieces(bytes, {}).status().message().find("byte fallback"),
            std::string::npos);
}

}  // namespace
}  // namespace trireme::text
