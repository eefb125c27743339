// SentencePiece models by hand: the fields of a protocol buffer as bytes.
#ifndef TRIREME_TESTS_RUNTIME_TEXT_PIECE_FILE_TEST_SUPPORT_H_
#define TRIREME_TESTS_RUNTIME_TEXT_PIECE_FILE_TEST_SUPPORT_H_

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

namespace trireme::text {

inline std::string WireNumber(uint64_t value) {
  std::string bytes;
  while (value >= 0x80) {
    bytes.push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

inline std::string WireVarint(uint64_t field, uint64_t value) {
  return WireNumber(field << 3) + WireNumber(value);
}

inline std::string WireBytes(uint64_t field, const std::string& bytes) {
  return WireNumber(field << 3 | 2) + WireNumber(bytes.size()) + bytes;
}

// One piece of a model, with its score and type.
inline std::string PieceMessage(const std::string& text, float score, uint64_t type) {
  std::string bits(sizeof(score), '\0');
  std::memcpy(bits.data(), &score, sizeof(score));
  return WireBytes(1, WireBytes(1, text) + WireNumber(2 << 3 | 5) + bits + WireVarint(3, type));
}

}  // namespace trireme::text

#endif  // TRIREME_TESTS_RUNTIME_TEXT_PIECE_FILE_TEST_SUPPORT_H_
