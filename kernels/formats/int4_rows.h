// The rows of a KV cache of kInt4, written and read once for all tables.
//
// A row is transformed (hadamard.h) and cut into groups of 64 neighbours that share a scale of one
// byte; x = level * scale. Codes have 6 bits for keys and 5 for values: an error of a key moves
// scores, and costs some four times what the same error of a value does. Levels stand wider apart
// the larger they are, as numbers do that are near normal: of code c of b bits, n = 2 c + 1 - 2^b,
// level n (curve + n^2) * unit, an odd cubic.
#ifndef TRIREME_KERNELS_FORMATS_INT4_ROWS_H_
#define TRIREME_KERNELS_FORMATS_INT4_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace trireme::kernels {

// Curves have the least mean square error of 64 normal numbers, to 2 %; units make the largest
// level 0.84 and 0.79.
struct Int4Code {
  int bits;
  float curve;
  float unit;

  constexpr int Levels() const { return 1 << bits; }
  // In units: a whole number below 2^20, so float32 is exact in any order.
  constexpr float Level(int code) const {
    const auto number = static_cast<float>(2 * code + 1 - Levels());
    return number * (curve + number * number);
  }
};
inline constexpr Int4Code kInt4Key = {.bits = 6, .curve = 10000, .unit = 0x1p-20F};
inline constexpr Int4Code kInt4Value = {.bits = 5, .curve = 2400, .unit = 0x1p-17F};

// The half-precision bits that the byte of a scale stands for.
constexpr uint16_t Int4ScaleBits(uint8_t scale) { return static_cast<uint16_t>(scale << 7); }

// Codes of 1 to 64 numbers, each the nearest level's, and the byte of their scale: of the least
// that reaches the largest magnitude and the next below it, the one whose squared errors sum to
// less. Numbers that are not finite, or beyond half precision, make the scale NaN and the codes 0.
uint8_t EncodeInt4(const Int4Code& code, const float* x, int64_t count, uint8_t* codes);

// Writes key and value [head_dim] of one slot into the head's part of its block; both are
// transformed in place.
void StoreInt4(const KeyValueCache& cache, float* key, float* value, int64_t place,
               std::byte* head);

// A channel of a slot's transformed key and value.
float Int4KeyAt(const KeyValueCache& cache, const std::byte* head, int64_t place, int64_t channel);
float Int4ValueAt(const KeyValueCache& cache, const std::byte* head, int64_t place,
                  int64_t channel);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_INT4_ROWS_H_
