#include "runtime/text/byte_pair_encoding.h"

#include <map>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trireme::text {
namespace {

using ::testing::ElementsAre;

using Pairs = std::map<std::pair<int32_t, int32_t>, Merge>;

PairTable TableOf(const Pairs& pairs) {
  PairTable table(pairs.size());
  for (const auto& [pair, merge] : pairs) {
    table.Add(pair.first, pair.second, merge);
  }
  return table;
}

// The definition, step by step: the lowest rank, the leftmost of equals.
std::vector<int32_t> MergeSlowly(const Pairs& pairs, std::vector<int32_t> symbols) {
  while (true) {
    size_t best = symbols.size();
    Merge best_merge;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto entry = pairs.find({symbols[i], symbols[i + 1]});
      if (entry != pairs.end() && entry->second.rank < best_merge.rank) {
        best = i;
        best_merge = entry->second;
      }
    }
    if (best == symbols.size()) {
      return symbols;
    }
    symbols[best] = best_merge.result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// merges 0 "l o", 1 "lo w", 2 "e r", 3 "low er", 4 "n e" with l=0 o=1 w=2 e=3 r=4 n=5.
const Pairs& SmallPairs() {
  static const Pairs* const pairs = new Pairs{
      {{0, 1}, {0, 6}}, {{6, 2}, {1, 7}}, {{3, 4}, {2, 8}}, {{7, 8}, {3, 9}}, {{5, 3}, {4, 10}}};
  return *pairs;
}

TEST(SymbolMerger, MergesByRankNotByPosition) {
  const PairTable table = TableOf(SmallPairs());
  SymbolMerger merger(&table);
  std::vector<int32_t> lower = {0, 1, 2, 3, 4};
  merger.Merge(&lower);
  EXPECT_THAT(lower, ElementsAre(9));
  std::vector<int32_t> newer = {5, 3, 2, 3, 4};  // "er" takes its e before "ne" takes the other
  merger.Merge(&newer);
  EXPECT_THAT(newer, ElementsAre(10, 2, 8));
}

TEST(SymbolMerger, TakesTheLeftmostOfEqualRanks) {
  const PairTable table = TableOf({{{0, 0}, {0, 1}}});
  SymbolMerger merger(&table);
  std::vector<int32_t> symbols = {0, 0, 0};
  merger.Merge(&symbols);
  EXPECT_THAT(symbols, ElementsAre(1, 0));
}

TEST(SymbolMerger, LeavesNegativeSymbolsAlone) {
  const PairTable table = TableOf({{{0, 0}, {0, 1}}});
  SymbolMerger merger(&table);
  std::vector<int32_t> symbols = {0, -7, 0, 0};
  merger.Merge(&symbols);
  EXPECT_THAT(symbols, ElementsAre(0, -7, 1));
}

TEST(SymbolMerger, ALongRunHalvesAgainAndAgain) {
  // 0 0 -> 1, 1 1 -> 2, ... -> 6: 64 letters a symbol; 201 letters are 3 x 64 and 8 and 1.
  Pairs pairs;
  for (int32_t i = 0; i < 6; ++i) {
    pairs[{i, i}] = {i, i + 1};
  }
  const PairTable table = TableOf(pairs);
  SymbolMerger merger(&table);
  std::vector<int32_t> symbols(201, 0);
  merger.Merge(&symbols);
  EXPECT_THAT(symbols, ElementsAre(6, 6, 6, 3, 0));
}

TEST(SymbolMerger, ANewPairOfALowerRankGoesBeforeTheRestOfThePass) {
  // "a b" becomes c by rank 5, and "c a" becomes d by rank 1: of "a b a b a b ..." each first
  // merge takes the a of the next pair, which leaves its b.
  const PairTable table = TableOf({{{0, 1}, {5, 2}}, {{2, 0}, {1, 3}}});
  SymbolMerger merger(&table);
  std::vector<int32_t> symbols;
  std::vector<int32_t> expected;
  for (int i = 0; i < 20; ++i) {
    symbols.insert(symbols.end(), {0, 1, 0, 1});
    expected.insert(expected.end(), {3, 1});
  }
  merger.Merge(&symbols);
  EXPECT_EQ(symbols, expected);
}

TEST(SymbolMerger, AFewPairsOfLowerRankBeforeALongRunMergeFirst) {
  // 0 1 -> 10 again and again; strays 2 0 -> 20, 3 0 -> 21, ... of lower ranks, each once.
  Pairs pairs = {{{0, 1}, {90, 10}}, {{10, 10}, {91, 11}}, {{1, 20}, {5, 12}}};
  for (int strays = 1; strays <= 6; ++strays) {
    pairs[{1 + strays, 0}] = {10 + strays, 19 + strays};
    std::vector<int32_t> symbols;
    for (int stray = 1; stray <= strays; ++stray) {
      symbols.push_back(1 + stray);
      for (int i = 0; i < 100; ++i) {
        symbols.insert(symbols.end(), {0, 1});
      }
    }
    const PairTable table = TableOf(pairs);
    SymbolMerger merger(&table);
    std::vector<int32_t> merged = symbols;
    merger.Merge(&merged);
    EXPECT_EQ(merged, MergeSlowly(pairs, symbols)) << strays;
  }
}

TEST(PairTable, KeepsTheFirstOfRepeatedPairs) {
  PairTable table(2);
  table.Add(1, 2, {0, 3});
  table.Add(1, 2, {1, 4});
  EXPECT_EQ(table.Find(1, 2).result, 3);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.Find(2, 1).rank, kNoMerge);
  EXPECT_EQ(table.Find(-1, 2).rank, kNoMerge);
}

// Random tables in which ranks repeat over different pairs (as SentencePiece's scores do) and a
// merge may make pairs of lower rank than its own; lengths on both sides of the switch between the
// two ways.
TEST(SymbolMerger, EqualsTheDefinitionOnRandomTablesAndTexts) {
  std::mt19937 random(7);
  const auto pick = [&random](int count) {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(count));
  };
  SymbolMerger* merger = nullptr;
  for (int round = 0; round < 300; ++round) {
    Pairs pairs;
    const int letters = 1 + pick(4);
    int32_t symbols = letters;
    while (symbols < letters + 12) {
      // A result is a new symbol, so every merge lengthens.
      pairs.try_emplace({pick(symbols), pick(symbols)}, Merge{pick(8), symbols});
      ++symbols;
    }
    const PairTable table = TableOf(pairs);
    SymbolMerger own(&table);
    merger = &own;
    for (const int length : {0, 1, 2, 5, 31, 32, 33, 34, 100, 300}) {
      std::vector<int32_t> text;
      for (int i = 0; i < length; ++i) {
        text.push_back(pick(20) == 0 ? -1 : pick(letters));
      }
      std::vector<int32_t> merged = text;
      merger->Merge(&merged);
      ASSERT_EQ(merged, MergeSlowly(pairs, text)) << "round " << round << ", length " << length;
    }
  }
}

}  // namespace
}  // namespace trireme::text
