#include "runtime/text/unigram_trie.h"

#include <random>
#include <string>

#include "gtest/gtest.h"

namespace trireme::text {
namespace {

TEST(UnigramTrie, TakesThePathOfTheHighestSum) {
  UnigramTrie<double> trie;
  trie.Add("a", 0, -1);
  trie.Add("b", 1, -1);
  trie.Add("ab", 2, -1.5);
  trie.Add("abc", 3, -5);
  const auto parts = trie.Cut("abcx", -10);
  // ab (-1.5) and c unknown (-10) lose to abc (-5); x is unknown.
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].id, 3);
  EXPECT_EQ(parts[1].id, -1);
  EXPECT_TRUE(trie.Cut("", -10).empty());
}

// Against all ways to cut, by recursion.
double BestSum(const std::vector<std::pair<std::string, double>>& tokens, const std::string& text) {
  if (text.empty()) {
    return 0;
  }
  double best = -1e9;
  for (const auto& [token, score] : tokens) {
    if (text.rfind(token, 0) == 0) {
      best = std::max(best, score + BestSum(tokens, text.substr(token.size())));
    }
  }
  return best;
}

TEST(UnigramTrie, EqualsTheBestOfAllCutsOnRandomTexts) {
  const std::vector<std::pair<std::string, double>> tokens = {
      {"a", -3}, {"b", -2.5}, {"ab", -4}, {"ba", -4.5}, {"aab", -5}, {"bb", -6}, {"abab", -6.5}};
  UnigramTrie<double> trie;
  for (size_t i = 0; i < tokens.size(); ++i) {
    trie.Add(tokens[i].first, static_cast<int32_t>(i), tokens[i].second);
  }
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int i = 0; i < 10; ++i) {
      text += random() % 2 == 0 ? 'a' : 'b';
    }
    double sum = 0;
    for (const auto& part : trie.Cut(text, -100)) {
      sum += tokens[static_cast<size_t>(part.id)].second;
    }
    EXPECT_DOUBLE_EQ(sum, BestSum(tokens, text)) << text;
  }
}

}  // namespace
}  // namespace trireme::text
