// Which weight format of the kernels holds a published matrix to the bit, and the storage blocks of
// that format. Integers of at most 8 bits with scales that half precision holds become blocks of
// the integer formats; E2M1 numbers with powers of two become MXFP4 and FP8 ones BF16; all others
// are kept as float32.
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_STORAGE_BLOCKS_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_STORAGE_BLOCKS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/formats/weight_format.h"

namespace trireme::weights {

inline constexpr int64_t kBlockColumns = 32;

// True when half precision holds the scale.
bool IsHalf(float scale);

// The narrowest format of integers from `least` to `most`; F32 when there is none.
kernels::WeightFormat IntegerFormat(int least, int most);

// Writes 32 numbers of a row, from column `column` of the row on, into the row's blocks. `numbers`
// are integers, or codes where the format has a codebook. Values of a superblock that come in
// several calls have the same scale.
void StoreNumbers(kernels::WeightFormat format, const int (&numbers)[kBlockColumns], float scale,
                  int64_t column, std::byte* row);

// Bytes of a row's blocks, the last one perhaps beyond the row.
int64_t BlockBytes(kernels::WeightFormat format, int64_t columns);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_STORAGE_BLOCKS_H_
