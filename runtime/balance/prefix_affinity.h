// Which replica a prompt belongs to. Prompts of one tenant that begin alike hash alike, so that
// they meet on one replica and share its cache; each replica has a rendezvous score for such a hash
// and the highest one owns it (Thaler, Ravishankar: Using name-based mappings to increase hit
// rates; 1998). Adding or removing one of N replicas moves 1/N of the prompts and no others. What
// keeps an owner from being flooded is the bounded load of pick.h.
//
// The index is a guess of what a replica has cached, made of what was sent to it. Wrong guesses
// cost time, never correctness: the replica compares tokens.
#ifndef TRIREME_RUNTIME_BALANCE_PREFIX_AFFINITY_H_
#define TRIREME_RUNTIME_BALANCE_PREFIX_AFFINITY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace trireme::balance {

inline constexpr int64_t kHashTokens = 16;      // of one hash block: a KV block
inline constexpr int64_t kAffinityBlocks = 4;   // that decide which replica owns a prompt
inline constexpr int64_t kHashBlocksMax = 512;  // longer prompts are told apart by these

struct PromptHashes {
  uint64_t prompt = 0;           // of all tokens
  uint64_t affinity = 0;         // of the first blocks; of all tokens when there is no full block
  std::vector<uint64_t> blocks;  // [full blocks] each covers all tokens before it too
};

// `seed` is the fleet's secret and `tenant` salts: tenants never share a hash.
PromptHashes HashPrompt(uint64_t seed, absl::string_view tenant, absl::Span<const int32_t> prompt);

// Of a replica's name, for RendezvousScore.
uint64_t HashReplicaName(uint64_t seed, absl::string_view name);

// How much a replica owns a prompt: the highest score of all replicas wins.
uint64_t RendezvousScore(uint64_t affinity, uint64_t replica_name_hash);

// Blocks that one replica has seen lately, at most `blocks_max`: two generations, the older one is
// dropped when the younger one is half full. Thread rule: one thread.
class PrefixIndex {
 public:
  explicit PrefixIndex(size_t blocks_max = 65536);

  // How many leading blocks are known. Takes log(blocks) look-ups: a known block's predecessors are
  // taken for known.
  int64_t Match(absl::Span<const uint64_t> blocks) const;
  void Insert(absl::Span<const uint64_t> blocks);
  // The replica began anew.
  void Clear();
  size_t size() const { return young_.size() + old_.size(); }

 private:
  bool Contains(uint64_t block) const { return young_.contains(block) || old_.contains(block); }

  const size_t generation_blocks_max_;
  absl::flat_hash_set<uint64_t> young_;
  absl::flat_hash_set<uint64_t> old_;  // none of young_
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_PREFIX_AFFINITY_H_
