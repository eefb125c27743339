// Where the parts of one head of one block of kInt4 lie, in bytes from its start. Four bits of a
// code stand in half a byte, the higher ones in planes of their own: one of values, two of keys.
//
//   key codes     [padded / 2][tokens]   row r has channel 32 (r / 16) + r mod 16 of every token in
//                                        its low halves and the same + 16 in its high ones, so that
//                                        lanes are tokens
//   key bits      [2][padded / 8][tokens]  bit j of row r is the fifth, or the sixth, of channel
//                                        8 r + j
//   value codes   [tokens][padded / 2]   channels as in the rows above
//   value bits    [tokens][padded / 8]
//   key scales    [groups][tokens]       the upper byte of half-precision bits without their sign
//   value scales  [tokens][groups]
//
// padded: head_dim rounded up to 32. What the codes mean is in int4_rows.h.
#ifndef TRIREME_KERNELS_FORMATS_INT4_LAYOUT_H_
#define TRIREME_KERNELS_FORMATS_INT4_LAYOUT_H_

#include <cstdint>

namespace trireme::kernels {

inline constexpr int kInt4Group = 64;  // channels that share a scale
inline constexpr int kInt4Chunk = 32;  // channels whose codes share bytes
inline constexpr int kInt4Half = kInt4Chunk / 2;

struct Int4Layout {
  int64_t head_dim;
  int64_t tokens;

  constexpr int64_t Groups() const { return (head_dim + kInt4Group - 1) / kInt4Group; }
  constexpr int64_t Chunks() const { return (head_dim + kInt4Chunk - 1) / kInt4Chunk; }
  constexpr int64_t RowBytes() const { return Chunks() * kInt4Chunk / 2; }
  constexpr int64_t PlaneBytes() const { return Chunks() * kInt4Chunk / 8; }
  constexpr int64_t KeyBits() const { return RowBytes() * tokens; }
  constexpr int64_t ValueCodes() const { return KeyBits() + 2 * PlaneBytes() * tokens; }
  constexpr int64_t ValueBits() const { return ValueCodes() + RowBytes() * tokens; }
  constexpr int64_t KeyScales() const { return ValueBits() + PlaneBytes() * tokens; }
  constexpr int64_t ValueScales() const { return KeyScales() + Groups() * tokens; }
  constexpr int64_t Bytes() const { return ValueScales() + tokens * Groups(); }

  // A channel's row of codes, and whether it is the high half of the bytes
  // there.
  static constexpr int64_t RowOf(int64_t channel) {
    return channel / kInt4Chunk * kInt4Half + channel % kInt4Half;
  }
  static constexpr int ShiftOf(int64_t channel) { return channel % kInt4Chunk < kInt4Half ? 0 : 4; }
};

static_assert(kInt4Group % kInt4Chunk == 0);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_INT4_LAYOUT_H_
