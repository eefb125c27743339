// Where the parts of one head of one 4-bit KV block lie, in bytes from its start:
//
//   key codes    [padded / 2][tokens] bytes: row r holds channels 16 (r / 8) + r mod 8, low half,
//                and the same + 8, high half, of every token, so that lanes are tokens
//   value codes  [tokens][padded / 2] bytes, channels as in the rows above
//   key scales   [padded / 16]{scale, minimum}[tokens] half-precision numbers
//   key orders   [tokens] uint16: the channel that the key's transform starts with
//   value scales [tokens][ceil(head_dim / 32)]{scale, minimum} half-precision numbers
//
// padded: head_dim rounded up to 16. What the codes mean is in int4_rows.h.
#ifndef TRIREME_KERNELS_FORMATS_INT4_LAYOUT_H_
#define TRIREME_KERNELS_FORMATS_INT4_LAYOUT_H_

#include <cstdint>

namespace trireme::kernels {

inline constexpr int kInt4KeyGroup = 16;    // channels of a key that share a scale and a minimum
inline constexpr int kInt4ValueGroup = 32;  // of a value
inline constexpr int kInt4Chunk = 16;       // channels whose codes lie in the same bytes

struct Int4Layout {
  int64_t head_dim;
  int64_t tokens;

  constexpr int64_t Padded() const { return (head_dim + kInt4Chunk - 1) / kInt4Chunk * kInt4Chunk; }
  constexpr int64_t RowBytes() const { return Padded() / 2; }
  constexpr int64_t ValueGroups() const {
    return (head_dim + kInt4ValueGroup - 1) / kInt4ValueGroup;
  }
  constexpr int64_t ValueCodes() const { return RowBytes() * tokens; }
  constexpr int64_t KeyScales() const { return 2 * ValueCodes(); }
  constexpr int64_t KeyOrders() const {
    return KeyScales() + Padded() / kInt4KeyGroup * 2 * tokens * 2;
  }
  constexpr int64_t ValueScales() const { return KeyOrders() + tokens * 2; }
  constexpr int64_t Bytes() const { return ValueScales() + tokens * ValueGroups() * 2 * 2; }

  // A channel's row of codes, and whether it is the high half of the bytes there.
  static constexpr int64_t RowOf(int64_t channel) {
    return channel / kInt4Chunk * (kInt4Chunk / 2) + channel % (kInt4Chunk / 2);
  }
  static constexpr int ShiftOf(int64_t channel) {
    return channel % kInt4Chunk < kInt4Chunk / 2 ? 0 : 4;
  }
};
static_assert(kInt4KeyGroup == kInt4Chunk && kInt4ValueGroup % kInt4Chunk == 0);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_INT4_LAYOUT_H_
