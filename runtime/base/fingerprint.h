// A 64-bit hash that tells two things apart by accident, not against an attacker: FNV-1a (Fowler,
// Noll, Vo). The same on every machine and in every version, unlike absl::Hash.
#ifndef TRIREME_RUNTIME_BASE_FINGERPRINT_H_
#define TRIREME_RUNTIME_BASE_FINGERPRINT_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace trireme {

class Fingerprint {
 public:
  // Bytes in the order of the calls; where one ends and the next begins does not matter.
  void Add(absl::string_view bytes) {
    for (const char byte : bytes) {
      value_ = (value_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
    }
  }
  // Little-endian.
  void Add(int64_t number) {
    for (int shift = 0; shift < 64; shift += 8) {
      const char byte = static_cast<char>(static_cast<uint64_t>(number) >> shift);
      Add(absl::string_view(&byte, 1));
    }
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace trireme

#endif  // TRIREME_RUNTIME_BASE_FINGERPRINT_H_
