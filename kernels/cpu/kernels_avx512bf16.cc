#include <cstddef>
#include <cstdint>

#include "kernels/cpu/cpu_tables.h"
#include "kernels/cpu/packed_layout.h"
#include "kernels/cpu/simd_avx512bf16.h"
#include "kernels/formats/all_formats.h"

namespace trireme::kernels::avx512bf16 {

// Each file uses the ones before it.
// clang-format off
#include "kernels/cpu/decode_groups.inc"
#include "kernels/cpu/matmul_tiles.inc"
#include "kernels/cpu/number_tiles.inc"
#include "kernels/cpu/pair_tiles.inc"
#include "kernels/cpu/matmul_products.inc"
#include "kernels/cpu/matmul_tasks.inc"
// clang-format on

namespace {

// Any count of tokens reads the packed pairs: they are the instruction's operands as they are.
struct DotProduct : PairProduct {
  static bool IsDirect(int64_t /*tokens*/) { return true; }
  static void Multiply(const TileRun& run, int tokens, bool /*is_direct*/) {
    MultiplyPairTile<PackedPairs>(run, tokens);
  }
};

void Matmul(const Execution& execution, const MatmulArgs& args) {
  if (args.x == nullptr && args.rounded != nullptr) {
    RunTasks(execution, args, RunTiles<DotProduct>);
  } else {
    avx512::kTable.matmul(execution, args);
  }
}

}  // namespace

const KernelTable& Table() {
  static const KernelTable kTable = [] {
    KernelTable table = avx512::kTable;
    table.name = "avx512bf16";
    table.rounded_bytes = RoundedBytes;
    table.round = Round;
    table.matmul = Matmul;
    return table;
  }();
  return kTable;
}

}  // namespace trireme::kernels::avx512bf16
