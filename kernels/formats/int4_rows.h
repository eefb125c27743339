// The 4-bit rows of a KV cache, written and read once for all tables.
//
// A row is transformed (hadamard.h) and cut into groups of neighbours; a group keeps a minimum and
// a scale in half precision, and x = fma(code, scale, minimum), code 0 to 15. A key's largest
// channel c is most often the same for all tokens and would take most of every group's range: its
// channels are numbered anew, i as i ^ c, so that c meets the constant row of the transform, where
// minima absorb it. After the transform that is a change of signs: channel i of the first run
// times (-1)^popcount(i & c), which reading takes back.
#ifndef TRIREME_KERNELS_FORMATS_INT4_ROWS_H_
#define TRIREME_KERNELS_FORMATS_INT4_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace trireme::kernels {

struct Int4Scale {
  uint16_t scale;  // half-precision bits
  uint16_t minimum;
};

// Codes of 1 to 32 numbers; scale = (maximum - minimum) / 15. Rounds to nearest, halves up. Numbers
// that are not finite, or beyond half precision, make the scale and minimum NaN and the codes 0.
Int4Scale EncodeInt4(const float* x, int64_t count, uint8_t* codes);

// As EncodeInt4; then scale and minimum are fitted to the codes by least squares, and codes to
// them, twice or until the sum of squared errors falls no more. What rows are written with.
Int4Scale FitInt4(const float* x, int64_t count, uint8_t* codes);

// -1 or 1, what channel `channel` of a transformed key of `head_dim` is multiplied with whose
// largest channel is `order`.
float Int4Sign(int64_t channel, int64_t order, int64_t head_dim);

// Writes key and value [head_dim] of one slot into the head's part of its block; both are
// transformed in place.
void StoreInt4(const KeyValueCache& cache, float* key, float* value, int64_t place,
               std::byte* head);

// A channel of a slot's transformed key and value.
float Int4Key(const KeyValueCache& cache, const std::byte* head, int64_t place, int64_t channel);
float Int4Value(const KeyValueCache& cache, const std::byte* head, int64_t place, int64_t channel);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_INT4_ROWS_H_
