#include "tests/kernels/emulated_amx_table.h"

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/cpu_tables.h"
#include "kernels/cpu/packed_layout.h"
#include "kernels/formats/all_formats.h"
#include "tests/kernels/simd_emulated_tiles.h"

namespace trireme::kernels::portable {

// Each file uses the ones before it.
// clang-format off
#include "kernels/cpu/decode_groups.inc"
#include "kernels/cpu/amx_operands.inc"
#include "kernels/cpu/amx_matmul.inc"
// clang-format on

namespace {

int64_t QuantizedBytesWithTiles(int64_t tokens, int64_t columns) {
  return tokens * cpu::QuantizedRowBytes(columns) + ActivationTilesBytes(tokens, columns);
}

void Multiply(const Execution& execution, const MatmulArgs& args) {
  if (CanMultiplyByTiles(args)) {
    MultiplyByTiles(execution, args);
  } else {
    kTable.matmul(execution, args);
  }
}

}  // namespace
}  // namespace trireme::kernels::portable

namespace trireme::kernels::check {

const KernelTable& EmulatedAmxTable() {
  static const KernelTable kTable = [] {
    KernelTable table = portable::kTable;
    table.name = "amx (emulated)";
    table.quantized_bytes = portable::QuantizedBytesWithTiles;
    table.matmul = portable::Multiply;
    return table;
  }();
  return kTable;
}

}  // namespace trireme::kernels::check
