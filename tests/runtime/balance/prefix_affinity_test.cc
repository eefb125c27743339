#include "runtime/balance/prefix_affinity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace trireme::balance {
namespace {

std::vector<int32_t> Tokens(int32_t first, int count) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

size_t Owner(uint64_t affinity, const std::vector<uint64_t>& names) {
  size_t best = 0;
  for (size_t index = 1; index < names.size(); ++index) {
    if (RendezvousScore(affinity, names[index]) > RendezvousScore(affinity, names[best])) {
      best = index;
    }
  }
  return best;
}

std::vector<uint64_t> Names(int count) {
  std::vector<uint64_t> names;
  for (int index = 0; index < count; ++index) {
    names.push_back(HashReplicaName(9, absl::StrCat("r", index)));
  }
  return names;
}

TEST(PrefixAffinityTest, PromptsThatBeginAlikeShareBlocksAndOwner) {
  std::vector<int32_t> a = Tokens(0, 100);
  std::vector<int32_t> b = a;
  b[70] = -1;  // in block 4, after the blocks that decide the owner
  const PromptHashes first = HashPrompt(1, "t", a);
  const PromptHashes second = HashPrompt(1, "t", b);
  ASSERT_EQ(first.blocks.size(), 6u);
  EXPECT_TRUE(std::equal(first.blocks.begin(), first.blocks.begin() + 4, second.blocks.begin()));
  EXPECT_NE(first.blocks[4], second.blocks[4]);
  EXPECT_NE(first.blocks[5], second.blocks[5]);  // a block covers all before it
  EXPECT_EQ(first.affinity, second.affinity);
  EXPECT_NE(first.prompt, second.prompt);
}

TEST(PrefixAffinityTest, F17_TenantsAndFleetsShareNoHash) {
  const std::vector<int32_t> tokens = Tokens(0, 64);
  EXPECT_NE(HashPrompt(1, "a", tokens).blocks[0], HashPrompt(1, "b", tokens).blocks[0]);
  EXPECT_NE(HashPrompt(1, "a", tokens).blocks[0], HashPrompt(2, "a", tokens).blocks[0]);
}

TEST(PrefixAffinityTest, ShortPromptsAreOwnedByAllTheirTokens) {
  EXPECT_NE(HashPrompt(1, "", Tokens(0, 5)).affinity, HashPrompt(1, "", Tokens(1, 5)).affinity);
}

// B-4: with 64 groups and N replicas, removing one moves its own groups and no others.
TEST(PrefixAffinityTest, RemovingAReplicaMovesItsOwnGroupsOnly) {
  const std::vector<uint64_t> all = Names(4);
  const std::vector<uint64_t> fewer(all.begin(), all.end() - 1);
  int moved = 0;
  constexpr int kGroups = 4000;
  for (int group = 0; group < kGroups; ++group) {
    const uint64_t affinity = HashPrompt(9, "", Tokens(group * 100, 64)).affinity;
    const size_t before = Owner(affinity, all);
    if (before == 3) {
      ++moved;
    } else {
      EXPECT_EQ(Owner(affinity, fewer), before);
    }
  }
  EXPECT_LE(moved, 1.5 / 4 * kGroups);
  EXPECT_GT(moved, 0.5 / 4 * kGroups);
}

TEST(PrefixAffinityTest, TheIndexKnowsTheLongestPrefix) {
  PrefixIndex index;
  index.Insert({{1, 2, 3, 4, 5}});
  EXPECT_EQ(index.Match({{1, 2, 3, 4, 5, 6, 7}}), 5);
  EXPECT_EQ(index.Match({{1, 2, 3, 9, 10}}), 3);
  EXPECT_EQ(index.Match({{8, 9}}), 0);
  EXPECT_EQ(index.Match({}), 0);
  index.Clear();
  EXPECT_EQ(index.Match({{1}}), 0);
}

// A million blocks that never come again, and the same ones over and over.
TEST(PrefixAffinityTest, F6_AFloodAndRepeatsStayWithinTheBound) {
  PrefixIndex index;
  const std::vector<uint64_t> used = {1, 2, 3, 4};
  uint64_t next = 1000;
  for (int turn = 0; turn < 10'000; ++turn) {
    std::vector<uint64_t> flood(100);
    std::iota(flood.begin(), flood.end(), next);
    next += flood.size();
    index.Insert(flood);
    index.Insert(used);
    ASSERT_LE(index.size(), 65536u);
  }
  EXPECT_EQ(index.Match(used), 4);
  const size_t size = index.size();
  for (int turn = 0; turn < 1000; ++turn) {
    index.Insert(used);
  }
  EXPECT_LE(index.size(), size + used.size());
}

// Blocks whose beginning is not known, a gap in a chain, a chain that another one continues: the
// answer is a number of leading blocks of what was asked, whatever was put in.
TEST(PrefixAffinityTest, F6_UnknownBeginningsAndGapsGiveAGuessWithinTheQuestion) {
  for (uint64_t known = 0; known < 256; ++known) {  // every subset of 8 blocks
    PrefixIndex index;
    std::vector<uint64_t> chain;
    for (uint64_t block = 1; block <= 8; ++block) {
      chain.push_back(block);
      if ((known >> (block - 1) & 1) != 0) {
        index.Insert({{block}});
      }
    }
    const int64_t guess = index.Match(chain);
    ASSERT_GE(guess, 0);
    ASSERT_LE(guess, 8);
    if (known == 0) {
      EXPECT_EQ(guess, 0);
    } else if (known == 255) {
      EXPECT_EQ(guess, 8);
    } else if (guess > 0) {
      EXPECT_NE(known >> (guess - 1) & 1, 0u);  // never an unknown block at its end
    }
    EXPECT_EQ(index.Match({{91, 92, 93}}), 0);
  }
}

TEST(PrefixAffinityTest, F6_TheIndexStaysBoundedAndKeepsWhatIsUsed) {
  PrefixIndex index(1000);
  for (uint64_t block = 1; block < 100000; ++block) {
    index.Insert({{block}});
    index.Insert({{7777777}});
    ASSERT_LE(index.size(), 1000u);
  }
  EXPECT_EQ(index.Match({{7777777}}), 1);
  EXPECT_EQ(index.Match({{5}}), 0);
}

}  // namespace
}  // namespace trireme::balance
