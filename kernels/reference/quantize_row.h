// The definition of activation quantisation (kernel_table.h), and the layout that table "reference"
// keeps activations in: [tokens] rows of {int8 codes[columns], float scales[columns / 32]}.
#ifndef TRIREME_KERNELS_REFERENCE_QUANTIZE_ROW_H_
#define TRIREME_KERNELS_REFERENCE_QUANTIZE_ROW_H_

#include <cstddef>
#include <cstdint>

namespace trireme::kernels::reference {

// Bytes of `tokens` rows of `columns` values; columns is a multiple of 32.
int64_t QuantizedBytes(int64_t tokens, int64_t columns);

// Quantises x[columns] into row token_index of `quantized`, which holds `tokens` rows.
void QuantizeRow(const float* x, int64_t columns, std::byte* quantized, int64_t token_index,
                 int64_t tokens);

// The codes [columns] and scales [columns / 32] of one row.
struct QuantizedRow {
  const int8_t* codes;
  const float* scales;
};
QuantizedRow RowOf(const std::byte* quantized, int64_t token_index, int64_t columns);

}  // namespace trireme::kernels::reference

#endif  // TRIREME_KERNELS_REFERENCE_QUANTIZE_ROW_H_
