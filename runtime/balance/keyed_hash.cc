#include "runtime/balance/keyed_hash.h"

#include <bit>
#include <cstddef>

namespace trireme::balance {
namespace {

struct SipState {
  uint64_t v0, v1, v2, v3;

  void Round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }

  void Absorb(uint64_t word) {
    v3 ^= word;
    Round();
    Round();
    v0 ^= word;
  }
};

uint64_t LittleEndian(absl::string_view bytes) {
  uint64_t word = 0;
  for (size_t index = 0; index < bytes.size(); ++index) {
    word |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[index])) << (8 * index);
  }
  return word;
}

}  // namespace

uint64_t KeyedHash(uint64_t key0, uint64_t key1, absl::string_view bytes) {
  SipState state = {key0 ^ 0x736f6d6570736575u, key1 ^ 0x646f72616e646f6du,
                    key0 ^ 0x6c7967656e657261u, key1 ^ 0x7465646279746573u};
  const uint64_t length_byte = static_cast<uint64_t>(bytes.size()) << 56;
  while (bytes.size() >= 8) {
    state.Absorb(LittleEndian(bytes.substr(0, 8)));
    bytes.remove_prefix(8);
  }
  state.Absorb(length_byte | LittleEndian(bytes));
  state.v2 ^= 0xff;
  for (int round = 0; round < 4; ++round) {
    state.Round();
  }
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace trireme::balance
