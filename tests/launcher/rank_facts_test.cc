#include "launcher/rank_facts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace trireme::launcher {
namespace {

constexpr char kModel[] = "tests/data/gguf-files/good/base-bpe.gguf";

std::map<std::string, std::string> FactsOf(const std::string& path,
                                           const engine::RankOptions& options = {}) {
  const auto checkpoint = weights::Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::map<std::string, std::string> facts;
  for (const comm::Fact& fact : RankFacts(**checkpoint, options)) {
    facts[fact.name] = fact.value;
  }
  return facts;
}

// The model with one byte changed, the first one after `marker`.
std::string ChangedAfter(const std::string& marker) {
  std::ifstream file(kModel, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t place = bytes.find(marker);
  EXPECT_NE(place, std::string::npos);
  // Past the array's type, element type, count, and the first text's length.
  const size_t byte = place + marker.size() + 4 + 4 + 8 + 8;
  bytes[byte] = bytes[byte] == 'Q' ? 'R' : 'Q';
  std::string path = testing::TempDir() + "/rank_facts_test.gguf";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(RankFactsTest, D11_ATokenOrAMergeThatDiffersIsAnotherTokenizer) {
  const auto facts = FactsOf(kModel);
  EXPECT_EQ(FactsOf(kModel), facts);
  for (const std::string key : {"tokenizer.ggml.tokens", "tokenizer.ggml.merges"}) {
    const auto other = FactsOf(ChangedAfter(key));
    EXPECT_NE(other.at("tokenizer"), facts.at("tokenizer")) << key;
    EXPECT_EQ(other.at("build"), facts.at("build"));
  }
}

TEST(RankFactsTest, D11_FilesBesideTheWeightsAreTheTokenizerToo) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "rank_facts_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const char* name : {"config.json", "model.safetensors", "generation_config.json"}) {
    fs::copy_file(fs::path("tests/data/families/gpt_oss") / name, folder / name);
  }
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}) {
    fs::copy_file(fs::path("tests/data/families/tiny_tokenizer") / name, folder / name);
  }
  const auto facts = FactsOf(folder.string());
  EXPECT_EQ(FactsOf((folder / "model.safetensors").string()).at("tokenizer"),
            facts.at("tokenizer"));
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                           "generation_config.json", "chat_template.jinja"}) {
    const bool is_there = fs::exists(folder / name);
    const std::uintmax_t size = is_there ? fs::file_size(folder / name) : 0;
    std::ofstream(folder / name, std::ios::app) << " ";
    const auto other = FactsOf(folder.string());
    EXPECT_NE(other.at("tokenizer"), facts.at("tokenizer")) << name;
    EXPECT_EQ(other.at("build"), facts.at("build"));
    if (is_there) {
      fs::resize_file(folder / name, size);
    } else {
      fs::remove(folder / name);
    }
    EXPECT_EQ(FactsOf(folder.string()), facts);
  }
}

TEST(RankFactsTest, D11_SettingsThatChangeTheAnswerAreAmongThem) {
  const auto facts = FactsOf(kModel);
  engine::RankOptions options;
  options.limits.tokens += 1;
  EXPECT_NE(FactsOf(kModel, options).at("settings"), facts.at("settings"));
  options = {};
  options.layout.stages = 2;
  EXPECT_NE(FactsOf(kModel, options).at("layout"), facts.at("layout"));
  options = {};
  options.threads = 7;  // these may differ
  options.kernels = "reference";
  EXPECT_EQ(FactsOf(kModel, options), facts);
}

}  // namespace
}  // namespace trireme::launcher
