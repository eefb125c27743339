#include <cstddef>
#include <cstdint>

#include "kernels/cpu/cpu_tables.h"
#include "kernels/cpu/packed_layout.h"
#include "kernels/cpu/simd_avx2.h"
#include "kernels/formats/all_formats.h"
#include "kernels/formats/hadamard.h"
#include "kernels/formats/int4_rows.h"
#include "kernels/formats/key_value_codes.h"
#include "kernels/reference/exp_polynomial.h"

namespace trireme::kernels::avx2 {

// Each file uses the ones before it.
// clang-format off
#include "kernels/cpu/quantize.inc"
#include "kernels/cpu/decode_groups.inc"
#include "kernels/cpu/matmul_tiles.inc"
#include "kernels/cpu/number_tiles.inc"
#include "kernels/cpu/pair_fma.inc"
#include "kernels/cpu/pair_tiles.inc"
#include "kernels/cpu/matmul_products.inc"
#include "kernels/cpu/matmul_tasks.inc"
#include "kernels/cpu/matmul.inc"
#include "kernels/cpu/norm_rope_activation.inc"
#include "kernels/cpu/shared_rows.inc"
#include "kernels/cpu/attention_tile.inc"
#include "kernels/cpu/attention_cache.inc"
#include "kernels/cpu/attention.inc"
#include "kernels/cpu/sampling.inc"
// clang-format on

constinit const KernelTable kTable = {
    .name = "avx2",
    .packed_bytes = cpu::PackedBytes,
    .quantized_bytes = QuantizedBytes,
    .rounded_bytes = RoundedBytes,
    .shared_scratch_bytes = AttentionScratchBytes,
    .pack = cpu::Pack,
    .quantize = Quantize,
    .round = Round,
    .matmul = Matmul,
    .embedding = cpu::Embedding,
    .rms_norm = RmsNorm,
    .gated_activation = GatedActivation,
    .add = AddValues,
    .layer_norm = LayerNorm,
    .adjust = Adjust,
    .square_sums = SquareSums,
    .scale_rows = ScaleRows,
    .combine_rows = CombineRows,
    .rope_and_store = RopeAndStore,
    .attention = Attention,
    .argmax = Argmax,
};

}  // namespace trireme::kernels::avx2
