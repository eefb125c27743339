// Stored weights to float32, exactly as specs of GGUF define them: for loaders, inspection and
// tests.
#ifndef TRIREME_KERNELS_FORMATS_DECODE_H_
#define TRIREME_KERNELS_FORMATS_DECODE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/formats/weight_format.h"

namespace trireme::kernels {

// Decodes columns first_column .. first_column + columns of one row into values[columns]. `row` is
// the row's storage from column 0, any alignment; it must hold whole storage blocks up to the last
// column asked for. Reads no block that holds none of these columns.
void DecodeRow(WeightFormat format, const std::byte* row, int64_t first_column, int64_t columns,
               float* values);

// Bytes of a row of `columns` values in a file; columns is a multiple of the format's
// storage_values.
int64_t StoredRowBytes(WeightFormat format, int64_t columns);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_DECODE_H_
