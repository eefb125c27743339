// How the narrow formats of the KV cache are written, once for all tables.
//
// Those of one byte a value have a float32 scale for the key and one for the value of each
// slot and head; value = number * scale, where the largest magnitude becomes the largest number.
// int8: numbers -127 to 127. E4M3: 8-bit floats up to 448. Rounding is to nearest even, as that of
// bfloat16, which has no scales.
#ifndef TRIREME_KERNELS_FORMATS_KEY_VALUE_CODES_H_
#define TRIREME_KERNELS_FORMATS_KEY_VALUE_CODES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace trireme::kernels {

// The number of a code. E4M3's code of NaN is not written: a row that holds NaN has a scale of NaN.
float NumberOf(KeyValueFormat format, uint8_t code);

// The code of the nearest number; beyond the largest one, the largest; 0 for NaN.
uint8_t CodeOf(KeyValueFormat format, float number);

// Writes key and value [head_dim] of one slot into the head's part of its block. kBF16, kInt8 and
// kE4M3 only.
void StoreNarrow(const KeyValueCache& cache, const float* key, const float* value, int64_t place,
                std::byte* head);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_KEY_VALUE_CODES_H_
