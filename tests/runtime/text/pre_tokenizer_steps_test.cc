#include "runtime/text/pre_tokenizer_steps.h"

#include "gtest/gtest.h"
#include "runtime/text/byte_level.h"
#include "runtime/text/utf8.h"
#include "tests/runtime/text/tokenizer_parts_test_support.h"

namespace trireme::text {
namespace {

std::vector<std::string> PiecesOf(const PreTokenizerSteps& steps, const std::string& text) {
  PieceList list;
  list.text = text;
  list.starts_text = true;
  if (!text.empty()) {
    list.pieces = {{0, static_cast<uint32_t>(text.size())}};
  }
  std::vector<std::string> pieces;
  const absl::Status status = steps.Apply(std::move(list), [&](const PieceList& batch) {
    for (const TextPiece& piece : batch.pieces) {
      const std::string bytes = batch.text.substr(piece.begin, piece.end - piece.begin);
      std::string shown;
      for (const char byte : bytes) {
        AppendUtf8(CharacterOfByte(static_cast<uint8_t>(byte)), &shown);
      }
      pieces.push_back(steps.gives_bytes() ? shown : bytes);
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return pieces;
}

TEST(PreTokenizerSteps, CutALongTextAsTheyCutItsWords) {
  // Three cuts, one of which is no plain one, and more pieces than fit one batch.
  const auto steps = PreTokenizerSteps::Create(nlohmann::json::parse(
                                                   R"({"type": "Sequence", "pretokenizers": [
              {"type": "Split", "pattern": {"Regex": " "}, "behavior": "MergedWithNext", "invert": false},
              {"type": "Split", "pattern": {"Regex": "[0-9]"}, "behavior": "Isolated", "invert": false},
              {"type": "Split", "pattern": {"Regex": "b+"}, "behavior": "Isolated", "invert": false}]})"),
                                               "pre_tokenizer");
  ASSERT_TRUE(steps.ok()) << steps.status();
  const std::string word =
      " ab12\xc3\xa9"
      "bb";
  const std::vector<std::string> of_word = {" a", "b", "1", "2", "\xc3\xa9", "bb"};
  EXPECT_EQ(PiecesOf(*steps, word), of_word);
  constexpr size_t kWords = 3000;
  std::string text;
  std::vector<std::string> expected;
  for (size_t i = 0; i < kWords; ++i) {
    text += word;
    expected.insert(expected.end(), of_word.begin(), of_word.end());
  }
  EXPECT_EQ(PiecesOf(*steps, text), expected);
}

TEST(PreTokenizerSteps, GiveThePiecesOfTheReferenceForEveryComponent) {
  const std::vector<nlohmann::json> rows = ComponentRows("pre_tokenizer");
  EXPECT_EQ(rows.size(), 54u);
  for (const nlohmann::json& row : rows) {
    const auto steps = PreTokenizerSteps::Create(row["spec"], "pre_tokenizer");
    ASSERT_TRUE(steps.ok()) << row["spec"] << steps.status();
    for (size_t i = 0; i < row["in"].size(); ++i) {
      if (row["in"][i] == "") {  // never asked: an empty text has no pieces
        continue;
      }
      EXPECT_EQ(PiecesOf(*steps, row["in"][i].get<std::string>()),
                row["out"][i].get<std::vector<std::string>>())
          << row["spec"] << row["in"][i];
    }
  }
}

// The patterns of each published family, as their tokenizer.json has them.
TEST(PreTokenizerSteps, CutTheTextsOfTheFixturesAsTheReferenceDoes) {
  const auto path = FindFixture("tokenizers/parts/splits.json");
  ASSERT_TRUE(path.has_value());
  const nlohmann::json file = ReadJson(*path);
  for (const auto& [name, patterns] : file["patterns"].items()) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& pattern : patterns) {
      list.push_back({{"type", "Split"},
                      {"pattern", {{"Regex", pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}});
    }
    const auto steps =
        PreTokenizerSteps::Create({{"type", "Sequence"}, {"pretokenizers", list}}, "pre_tokenizer");
    ASSERT_TRUE(steps.ok()) << steps.status();
    for (const auto& row : file["cases"]) {
      std::vector<size_t> lengths;
      for (const std::string& piece : PiecesOf(*steps, row["text"].get<std::string>())) {
        lengths.push_back(piece.size());
      }
      EXPECT_EQ(lengths, row["splits"][name].get<std::vector<size_t>>()) << name << row["text"];
    }
  }
}

TEST(PreTokenizerSteps, RefuseWhatTheyDoNotKnowByItsPlace) {
  const auto steps = PreTokenizerSteps::Create(
      nlohmann::json::parse(
          R"({"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"})"),
      "pre_tokenizer");
  EXPECT_NE(steps.status().message().find("pre_tokenizer.pattern: a group is not closed"),
            std::string::npos)
      << steps.status();
}

}  // namespace
}  // namespace trireme::text
