#include "runtime/cache/block_pool.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace trireme::cache {

BlockPool::BlockPool(int32_t blocks_total) {
  CHECK_GE(blocks_total, 0);
  taken_.resize(static_cast<size_t>(blocks_total), false);
  free_.reserve(static_cast<size_t>(blocks_total));
  for (int32_t block = blocks_total - 1; block >= 0; --block) {
    free_.push_back(block);
  }
}

int32_t BlockPool::Take() {
  CHECK_GT(blocks_free(), 0);
  const int32_t block = free_.back();
  free_.pop_back();
  taken_[static_cast<size_t>(block)] = true;
  taken_max_ = std::max(taken_max_, blocks_taken());
  return block;
}

void BlockPool::Give(int32_t block) {
  CHECK_GE(block, 0);
  CHECK_LT(block, blocks_total());
  CHECK(taken_[static_cast<size_t>(block)]);  // a block is given back once
  taken_[static_cast<size_t>(block)] = false;
  free_.push_back(block);
}

}  // namespace trireme::cache
