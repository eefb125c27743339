#include "runtime/cache/block_pool.h"

#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace trireme::cache {
namespace {

TEST(BlockPoolTest, HandsOutEachBlockOnce) {
  BlockPool pool(5);
  std::set<int32_t> blocks;
  while (pool.blocks_free() > 0) {
    blocks.insert(pool.Take());
  }
  EXPECT_EQ(blocks, (std::set<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pool.blocks_taken(), 5);
  EXPECT_EQ(pool.blocks_total(), 5);
}

TEST(BlockPoolTest, CountsReturnToTheStartAfterRandomUse) {
  BlockPool pool(37);
  std::mt19937 random(1);
  std::vector<int32_t> held;
  int32_t held_max = 0;
  for (int operation = 0; operation < 10000; ++operation) {
    if (held.empty() || (random() % 2 == 0 && pool.blocks_free() > 0)) {
      held.push_back(pool.Take());
    } else {
      const size_t index = random() % held.size();
      pool.Give(held[index]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(index));
    }
    held_max = std::max(held_max, static_cast<int32_t>(held.size()));
    ASSERT_EQ(pool.blocks_taken(), static_cast<int32_t>(held.size()));
    ASSERT_EQ(std::set<int32_t>(held.begin(), held.end()).size(), held.size());
  }
  for (const int32_t block : held) {
    pool.Give(block);
  }
  EXPECT_EQ(pool.blocks_free(), 37);
  EXPECT_EQ(pool.blocks_taken_max(), held_max);
}

TEST(BlockPoolTest, CountsBlocksOfPositions) {
  EXPECT_EQ(BlocksFor(0), 0);
  EXPECT_EQ(BlocksFor(1), 1);
  EXPECT_EQ(BlocksFor(16), 1);
  EXPECT_EQ(BlocksFor(17), 2);
}

TEST(BlockPoolDeathTest, EndsTheProgramOnADoubleFree) {
  BlockPool pool(2);
  const int32_t block = pool.Take();
  pool.Give(block);
  EXPECT_DEATH(pool.Give(block), "check failed");
}

TEST(BlockPoolDeathTest, EndsTheProgramWhenAnEmptyPoolIsAsked) {
  BlockPool pool(1);
  pool.Take();
  EXPECT_DEATH(pool.Take(), "check failed");
}

}  // namespace
}  // namespace trireme::cache
