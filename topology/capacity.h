// The arithmetic of what fits and how fast it can be at most: weights, keys and values, memory
// bandwidth. Bytes are decimal here, as those who sell memory bandwidth count them.
#ifndef TRIREME_TOPOLOGY_CAPACITY_H_
#define TRIREME_TOPOLOGY_CAPACITY_H_

#include <cstdint>

namespace trireme::topology {

// All parameters must be held, also those of experts that a token does not use.
double WeightBytes(double parameters, double bits_per_weight);

struct KvBudget {
  double memory_bytes = 0;
  double kept_back_share = 0;  // of the memory, for everything else
  double weight_bytes = 0;
  double kv_bytes_per_token = 0;
};

// Tokens whose keys and values fit beside the weights; 0 when not even those do.
int64_t TokensThatFit(const KvBudget& budget);

// Decode of one token reads `bytes` from memory once and cannot be faster than that.
double TokensPerSecond(double bytes, double bytes_per_second);

// The most bits a weight may have for weights of `bytes`.
double BitsPerWeight(double bytes, double parameters);

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_CAPACITY_H_
