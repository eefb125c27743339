// The KV blocks of a replica as numbers: which are free and which are taken. Every rank holds the
// same blocks of its own heads and layers, so one pool, at the controller, speaks for all of them.
// The memory itself is kv_cache.
//
// A freed block may be handed out again at once, even while plans that read it are in flight: every
// rank runs the plans in their order, so whoever gets the block writes it after the last read.
//
// Thread rule: one thread (the engine thread).
#ifndef TRIREME_RUNTIME_CACHE_BLOCK_POOL_H_
#define TRIREME_RUNTIME_CACHE_BLOCK_POOL_H_

#include <cstdint>
#include <vector>

#include "kernels/kernel_table.h"

namespace trireme::cache {

inline constexpr int32_t kBlockTokens = kernels::kBlockTokens;  // token slots of one block

// Blocks that hold `positions` tokens.
constexpr int64_t BlocksFor(int64_t positions) {
  return (positions + kBlockTokens - 1) / kBlockTokens;
}

class BlockPool {
 public:
  // All blocks 0 .. blocks_total - 1 are free.
  explicit BlockPool(int32_t blocks_total);

  int32_t blocks_total() const { return static_cast<int32_t>(taken_.size()); }
  int32_t blocks_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t blocks_taken() const { return blocks_total() - blocks_free(); }
  // The most blocks that were ever taken at once.
  int32_t blocks_taken_max() const { return taken_max_; }

  // A free block; there must be one. The last one freed comes first: it is the likeliest to be in
  // a processor's cache.
  int32_t Take();

  // Gives a taken block back. Giving back one that is free ends the program.
  void Give(int32_t block);

 private:
  std::vector<int32_t> free_;  // a stack
  std::vector<bool> taken_;    // [blocks]
  int32_t taken_max_ = 0;
};

}  // namespace trireme::cache

#endif  // TRIREME_RUNTIME_CACHE_BLOCK_POOL_H_
