// Random numbers of one seed, the same on every machine: what the balancer and its simulation draw
// from, so that a run can be repeated. Not for secrets.
#ifndef TRIREME_RUNTIME_BALANCE_SEEDED_RANDOM_H_
#define TRIREME_RUNTIME_BALANCE_SEEDED_RANDOM_H_

#include <cstdint>

#include "runtime/base/check.h"

namespace trireme::balance {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators; OOPSLA 2014): one
// addition and one mix a number. Thread rule: one thread.
class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}

  static constexpr uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15u); }
  // In [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // In [0, count), count > 0. The bias of at most count / 2^64 does not matter here.
  uint64_t Below(uint64_t count) {
    CHECK_GT(count, 0u);
    return Next() % count;
  }
  bool Chance(double probability) { return Uniform() < probability; }

 private:
  uint64_t state_;
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_SEEDED_RANDOM_H_
