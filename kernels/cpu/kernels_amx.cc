#include <cstddef>
#include <cstdint>

#include "kernels/cpu/cpu_tables.h"
#include "kernels/cpu/packed_layout.h"
#include "kernels/cpu/simd_amx.h"
#include "kernels/formats/all_formats.h"

namespace trireme::kernels::amx {
namespace {
using namespace avx512;
}

// Each file uses the ones before it.
// clang-format off
#include "kernels/cpu/decode_groups.inc"
#include "kernels/cpu/amx_operands.inc"
#include "kernels/cpu/amx_matmul.inc"
// clang-format on

namespace {

// From here on a product of tiles, which costs the same for 1 to 16 tokens, is the faster one.
constexpr int64_t kTileTokensMin = 9;

int64_t QuantizedBytes(int64_t tokens, int64_t columns) {
  const int64_t tiles_bytes = tokens < kTileTokensMin ? 0 : ActivationTilesBytes(tokens, columns);
  return tokens * cpu::QuantizedRowBytes(columns) + tiles_bytes;
}

void Matmul(const Execution& execution, const MatmulArgs& args) {
  if (args.tokens >= kTileTokensMin && CanMultiplyByTiles(args)) {
    MultiplyByTiles(execution, args);
  } else {
    avx512::kTable.matmul(execution, args);
  }
}

}  // namespace

const KernelTable& Table() {
  static const KernelTable kTable = [] {
    KernelTable table = avx512::kTable;
    table.name = "amx";
    table.quantized_bytes = QuantizedBytes;
    table.matmul = Matmul;
    return table;
  }();
  return kTable;
}

}  // namespace trireme::kernels::amx
