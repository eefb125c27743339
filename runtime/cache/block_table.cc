#include "runtime/cache/block_table.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace trireme::cache {

BlockTable::~BlockTable() { CHECK(blocks_.empty()); }

void BlockTable::Reserve(int64_t positions) {
  blocks_.reserve(static_cast<size_t>(BlocksFor(positions)));
}

int32_t BlockTable::MissingBlocks(int64_t positions) const {
  const int64_t missing = BlocksFor(positions) - static_cast<int64_t>(blocks_.size());
  return static_cast<int32_t>(std::max<int64_t>(missing, 0));
}

void BlockTable::Grow(int64_t positions, BlockPool& pool) {
  for (int32_t missing = MissingBlocks(positions); missing > 0; --missing) {
    blocks_.push_back(pool.Take());
  }
}

void BlockTable::Clear(BlockPool& pool) {
  while (!blocks_.empty()) {
    pool.Give(blocks_.back());
    blocks_.pop_back();
  }
}

int32_t BlockTable::Slot(int32_t position) const {
  const auto block_index = static_cast<size_t>(position / kBlockTokens);
  CHECK_LT(block_index, blocks_.size());
  return blocks_[block_index] * kBlockTokens + position % kBlockTokens;
}

}  // namespace trireme::cache
