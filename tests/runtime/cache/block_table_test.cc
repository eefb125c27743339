#include "runtime/cache/block_table.h"

#include "gtest/gtest.h"

namespace trireme::cache {
namespace {

TEST(BlockTableTest, GrowsByWholeBlocksAndKeepsSlotsInPlace) {
  BlockPool pool(8);
  BlockTable table;
  EXPECT_EQ(table.MissingBlocks(17), 2);
  table.Grow(17, pool);
  EXPECT_EQ(pool.blocks_taken(), 2);
  const int32_t slot = table.Slot(16);
  EXPECT_EQ(slot, table.blocks()[1] * kBlockTokens);
  EXPECT_EQ(table.Slot(15), table.blocks()[0] * kBlockTokens + 15);

  EXPECT_EQ(table.MissingBlocks(32), 0);
  table.Grow(33, pool);
  EXPECT_EQ(pool.blocks_taken(), 3);
  EXPECT_EQ(table.Slot(16), slot);

  table.Clear(pool);
  EXPECT_EQ(pool.blocks_free(), 8);
  EXPECT_TRUE(table.blocks().empty());
}

TEST(BlockTableDeathTest, EndsTheProgramWhenAPositionHasNoBlock) {
  BlockPool pool(1);
  BlockTable table;
  table.Grow(1, pool);
  EXPECT_DEATH(table.Slot(16), "check failed");
  table.Clear(pool);
}

}  // namespace
}  // namespace trireme::cache
