// A hash that nobody can steer without its key: SipHash-2-4 (Aumasson, Bernstein: SipHash, a fast
// short-input PRF; 2012). For hashes of what clients send; Fingerprint of base is for accidents.
#ifndef TRIREME_RUNTIME_BALANCE_KEYED_HASH_H_
#define TRIREME_RUNTIME_BALANCE_KEYED_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace trireme::balance {

// key0 and key1 are the two little-endian halves of the paper's 16-byte key.
uint64_t KeyedHash(uint64_t key0, uint64_t key1, absl::string_view bytes);

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_KEYED_HASH_H_
