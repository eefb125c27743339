// Where one sequence's keys and values lie: block i of the table holds positions
// [i * kBlockTokens, (i + 1) * kBlockTokens).
//
// Thread rule: the pool's.
#ifndef TRIREME_RUNTIME_CACHE_BLOCK_TABLE_H_
#define TRIREME_RUNTIME_CACHE_BLOCK_TABLE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/cache/block_pool.h"

namespace trireme::cache {

class BlockTable {
 public:
  BlockTable() = default;
  // Dropping a table that still holds blocks is a bug: Clear it first.
  ~BlockTable();
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  // Makes room for the table of `positions`, so that growing to it allocates no memory.
  void Reserve(int64_t positions);

  // Blocks to take from a pool before `positions` fit; 0 when they do.
  int32_t MissingBlocks(int64_t positions) const;

  // Takes the missing blocks; the pool must have them.
  void Grow(int64_t positions, BlockPool& pool);

  // Gives all blocks back.
  void Clear(BlockPool& pool);

  absl::Span<const int32_t> blocks() const { return blocks_; }

  // Slot of a position that fits: block index * kBlockTokens + position in the block.
  int32_t Slot(int32_t position) const;

 private:
  std::vector<int32_t> blocks_;
};

}  // namespace trireme::cache

#endif  // TRIREME_RUNTIME_CACHE_BLOCK_TABLE_H_
