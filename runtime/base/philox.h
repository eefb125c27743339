// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011):
// random bits as a pure function of a key and a counter, so that a random stream has no state to
// lose and continues on any machine. Not for secrets.
#ifndef TRIREME_RUNTIME_BASE_PHILOX_H_
#define TRIREME_RUNTIME_BASE_PHILOX_H_

#include <array>
#include <cstdint>

namespace trireme {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// The four random words of one counter value.
constexpr PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// A number in [0, 1) with 53 random bits, of the first two words.
constexpr double PhiloxUniform(const PhiloxCounter& words) {
  const uint64_t bits = (static_cast<uint64_t>(words[1]) << 32 | words[0]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace trireme

#endif  // TRIREME_RUNTIME_BASE_PHILOX_H_
