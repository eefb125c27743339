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

// What unpacking the weights and what a tile of tokens cost, in tokens that the vector units would
// multiply in the same time: measured on an Intel Xeon, family 6 model 207, 2026-12-01.
struct TileCosts {
  int64_t unpacking;
  int64_t tile;
};
constexpr TileCosts kCosts = {9, 10};
constexpr TileCosts kCostsOfTwoDigits = {24, 8};
constexpr int64_t kTileTokensMin = kCosts.unpacking + 2 * kCosts.tile + 1;

bool AreTilesFaster(WeightFormat format, int64_t tokens) {
  const TilePlan plan = VisitFormat(format, [](auto block) {
    using Block = decltype(block);
    if constexpr (InfoOf(Block::kFormat).is_quantized) {
      return PlanOf(Block::kTraits);
    } else {
      return TilePlan::kOneTile;
    }
  });
  const TileCosts costs = plan == TilePlan::kOneTile ? kCosts : kCostsOfTwoDigits;
  return tokens > costs.unpacking + costs.tile * TokenTiles(tokens);
}

bool AreTilesFaster(const MatmulArgs& args) {
  for (int o = 0; o < args.output_count; ++o) {
    if (!AreTilesFaster(args.outputs[o].slices[0].shape.format, args.tokens)) {
      return false;
    }
  }
  return args.tokens >= kTileTokensMin;
}

int64_t QuantizedBytes(int64_t tokens, int64_t columns) {
  const int64_t tiles_bytes = tokens < kTileTokensMin ? 0 : ActivationTilesBytes(tokens, columns);
  return tokens * cpu::QuantizedRowBytes(columns) + tiles_bytes;
}

void Matmul(const Execution& execution, const MatmulArgs& args) {
  if (CanMultiplyByTiles(args) && AreTilesFaster(args)) {
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
