#include "runtime/text/pair_model.h"

#include "gtest/gtest.h"

namespace trireme::text {
namespace {

// Ids 0 to 6; "e" with an accent is in the vocabulary only as its bytes.
const std::vector<std::string>& SmallTokens() {
  static const auto* const tokens =
      new std::vector<std::string>{"<unk>", "l", "o", "w", "lo", "low", "<0xC3>", "<0xA9>", "oo"};
  return *tokens;
}

std::vector<int32_t> IdsOf(const nlohmann::json& model, const std::string& text) {
  const auto fields = JsonFields::Of(model, "model");
  const auto pairs = PairModel::Create(*fields, SmallTokens(), /*gives_bytes=*/false);
  EXPECT_TRUE(pairs.ok()) << pairs.status();
  PieceList list;
  list.text = text;
  list.pieces = {{0, static_cast<uint32_t>(text.size())}};
  std::vector<int32_t> ids;
  EXPECT_TRUE((*pairs)->Encode(list, &ids).ok());
  return ids;
}

nlohmann::json SmallModel() { return {{"merges", {"l o", "lo w"}}, {"unk_token", "<unk>"}}; }

TEST(PairModel, MergesByRankAndFallsBack) {
  EXPECT_EQ(IdsOf(SmallModel(), "lowlo"), (std::vector<int32_t>{5, 4}));
  EXPECT_EQ(IdsOf(SmallModel(), "xyl"), (std::vector<int32_t>{0, 0, 1}));
  nlohmann::json model = SmallModel();
  model["fuse_unk"] = true;
  EXPECT_EQ(IdsOf(model, "xyl"), (std::vector<int32_t>{0, 1}));
  model["byte_fallback"] = true;
  EXPECT_EQ(IdsOf(model, "\xc3\xa9l"), (std::vector<int32_t>{6, 7, 1}));
  // Bytes overtake an unknown token that waits for company, as in the reference.
  EXPECT_EQ(IdsOf(model, "x\xc3\xa9l"), (std::vector<int32_t>{6, 7, 0, 1}));
}

TEST(PairModel, WholePiecesComeFirstWhereMergesAreIgnored) {
  nlohmann::json model = SmallModel();
  EXPECT_EQ(IdsOf(model, "oo"), (std::vector<int32_t>{2, 2}));
  model["ignore_merges"] = true;
  EXPECT_EQ(IdsOf(model, "oo"), (std::vector<int32_t>{8}));
}

TEST(PairModel, C9_RefusesMergesOfUnknownTokensByTheirPlace) {
  const nlohmann::json model = {{"merges", {"l o", "x y"}}};
  const auto fields = JsonFields::Of(model, "model");
  const auto pairs = PairModel::Create(*fields, SmallTokens(), /*gives_bytes=*/false);
  EXPECT_EQ(pairs.status().message(), "model.merges[1]: the token \"x\" is not in model.vocab");
}

}  // namespace
}  // namespace trireme::text
