#include "runtime/balance/prefix_affinity.h"

#include <algorithm>
#include <utility>

#include "runtime/balance/keyed_hash.h"
#include "runtime/balance/seeded_random.h"

namespace trireme::balance {
namespace {

absl::string_view BytesOf(absl::Span<const int32_t> tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(int32_t)};
}

}  // namespace

PromptHashes HashPrompt(uint64_t seed, absl::string_view tenant, absl::Span<const int32_t> prompt) {
  PromptHashes hashes;
  uint64_t chain = KeyedHash(seed, 0, tenant);
  size_t hashed = 0;
  hashes.blocks.reserve(std::min(prompt.size() / kHashTokens, size_t{kHashBlocksMax}));
  while (prompt.size() - hashed >= kHashTokens && hashes.blocks.size() < kHashBlocksMax) {
    chain = KeyedHash(seed, chain, BytesOf(prompt.subspan(hashed, kHashTokens)));
    hashes.blocks.push_back(chain);
    hashed += kHashTokens;
  }
  hashes.prompt = KeyedHash(seed, chain, BytesOf(prompt.subspan(hashed)));
  hashes.affinity =
      hashes.blocks.empty()
          ? hashes.prompt
          : hashes.blocks[std::min<size_t>(hashes.blocks.size(), kAffinityBlocks) - 1];
  return hashes;
}

uint64_t HashReplicaName(uint64_t seed, absl::string_view name) { return KeyedHash(seed, 1, name); }

uint64_t RendezvousScore(uint64_t affinity, uint64_t replica_name_hash) {
  return SeededRandom::Mix(affinity ^ SeededRandom::Mix(replica_name_hash));
}

PrefixIndex::PrefixIndex(size_t blocks_max) : generation_blocks_max_(blocks_max / 2) {}

int64_t PrefixIndex::Match(absl::Span<const uint64_t> blocks) const {
  int64_t known = 0;
  auto unknown = static_cast<int64_t>(blocks.size()) + 1;
  while (unknown - known > 1) {
    const int64_t middle = (known + unknown) / 2;
    (Contains(blocks[static_cast<size_t>(middle - 1)]) ? known : unknown) = middle;
  }
  return known;
}

void PrefixIndex::Insert(absl::Span<const uint64_t> blocks) {
  for (const uint64_t block : blocks) {
    old_.erase(block);
    young_.insert(block);
    if (young_.size() >= generation_blocks_max_) {
      old_ = std::exchange(young_, {});
    }
  }
}

void PrefixIndex::Clear() {
  young_.clear();
  old_.clear();
}

}  // namespace trireme::balance
