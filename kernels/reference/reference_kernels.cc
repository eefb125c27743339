#include "kernels/reference/reference_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/formats/all_formats.h"
#include "kernels/formats/decode.h"
#include "kernels/formats/group_scales.h"
#include "kernels/reference/quantize_row.h"
#include "kernels/reference/reference_rows.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels::reference {
namespace {

// A packed slice is the storage blocks that cover its columns, row after row.
struct CoveringBlocks {
  int64_t first;      // index of the first block in the tensor's row
  int64_t row_bytes;  // of the covering blocks
  int64_t skipped;    // columns of the first block before the slice
};

CoveringBlocks BlocksOf(const SliceShape& shape) {
  const WeightFormatInfo& info = InfoOf(shape.format);
  const int64_t first = shape.first_column / info.storage_values;
  const int64_t end =
      (shape.first_column + shape.columns + info.storage_values - 1) / info.storage_values;
  return {first, (end - first) * info.storage_bytes,
          shape.first_column - first * info.storage_values};
}

int64_t PackedBytes(const SliceShape& shape) { return shape.rows * BlocksOf(shape).row_bytes; }

void Pack(const PackArgs& args) {
  const CoveringBlocks blocks = BlocksOf(args.shape);
  const int64_t offset = blocks.first * InfoOf(args.shape.format).storage_bytes;
  for (int64_t row = 0; row < args.shape.rows; ++row) {
    std::memcpy(args.packed + row * blocks.row_bytes,
                args.source + row * args.source_row_bytes + offset,
                static_cast<size_t>(blocks.row_bytes));
  }
}

void Quantize(const Execution& execution, const QuantizeArgs& args) {
  execution.pool->ParallelFor(args.tokens, [&](int64_t token, int /*worker_index*/) {
    QuantizeRow(args.x + token * args.x_stride, args.columns, args.quantized, token, args.tokens);
  });
}

int64_t RoundedBytes(int64_t tokens, int64_t columns) {
  return tokens * columns * static_cast<int64_t>(sizeof(uint16_t));
}

// Rows of bfloat16 numbers, [tokens, columns].
void Round(const Execution& execution, const RoundArgs& args) {
  auto* rounded = reinterpret_cast<uint16_t*>(args.rounded);
  execution.pool->ParallelFor(args.tokens, [&](int64_t token, int /*worker_index*/) {
    for (int64_t column = 0; column < args.columns; ++column) {
      const uint16_t value = FloatToBFloat16(args.x[token * args.x_stride + column]);
      const bool counts_as_zero = std::fabs(BFloat16ToFloat(value)) < kBFloat16ActivationMin;
      rounded[token * args.columns + column] = counts_as_zero ? uint16_t{0} : value;
    }
  });
}

// I_g of kernel_table.h.
float GroupSum(const WeightGroup& group, GroupTraits traits, const GroupScales& scales,
               const int8_t* activations) {
  int32_t halves[2] = {0, 0};
  for (int i = 0; i < kGroupValues; ++i) {
    halves[i / 16] += CodeValue(traits, group.codes[i]) * activations[i];
  }
  if (!HasHalfGroups(traits)) {
    return static_cast<float>(halves[0] + halves[1]);
  }
  return std::fma(static_cast<float>(halves[1]), scales.half_factors[1],
                  std::fma(static_cast<float>(halves[0]), scales.half_factors[0], 0.0F));
}

// A_g times d_g, of `count` activations.
float ScaledSum(const int8_t* activations, int count, float activation_scale) {
  int32_t sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += activations[i];
  }
  return static_cast<float>(sum) * activation_scale;
}

// The partial of one slice for one row and one token.
template <typename Block>
float IntegerChain(const SliceShape& shape, const std::byte* row, const int8_t* activations,
                   const float* activation_scales) {
  constexpr GroupTraits kTraits = Block::kTraits;
  constexpr int64_t kBlockGroups = InfoOf(Block::kFormat).storage_values / kGroupValues;
  const int64_t skipped_groups = BlocksOf(shape).skipped / kGroupValues;
  float sum = 0;
  for (int64_t g = 0; g < shape.columns / kGroupValues; ++g) {
    const int64_t stored_group = skipped_groups + g;
    Block block;
    std::memcpy(&block, row + stored_group / kBlockGroups * static_cast<int64_t>(sizeof(Block)),
                sizeof(Block));
    const WeightGroup group = block.Group(static_cast<int>(stored_group % kBlockGroups));
    const GroupScales scales = ScalesOf(kTraits, group);
    const int8_t* a = activations + g * kGroupValues;
    const float d = activation_scales[g];
    sum = std::fma(GroupSum(group, kTraits, scales, a) * d, scales.scale, sum);
    if constexpr (kTraits.has_minimum) {
      constexpr int kRuns = HasHalfGroups(kTraits) ? 2 : 1;
      constexpr int kRunValues = static_cast<int>(kGroupValues) / kRuns;
      for (int h = 0; h < kRuns; ++h) {
        sum = std::fma(scales.minima[h], ScaledSum(a + h * kRunValues, kRunValues, d), sum);
      }
    }
  }
  return sum;
}

template <typename Block>
float FloatChain(const SliceShape& shape, const std::byte* row, const float* x) {
  constexpr int64_t kBlockValues = InfoOf(Block::kFormat).storage_values;
  const int64_t skipped = BlocksOf(shape).skipped;
  float sum = 0;
  for (int64_t column = 0; column < shape.columns; ++column) {
    const int64_t stored = skipped + column;
    Block block;
    std::memcpy(&block, row + stored / kBlockValues * static_cast<int64_t>(sizeof(Block)),
                sizeof(Block));
    sum = std::fma(block.Value(static_cast<int>(stored % kBlockValues)), x[column], sum);
  }
  return sum;
}

// Of BF16 weights and rounded activations.
float PairChain(const SliceShape& shape, const std::byte* row, const uint16_t* x) {
  const auto* stored = reinterpret_cast<const uint16_t*>(row);
  const auto add = [stored, x](int64_t column, float sum) {
    const float weight = BFloat16ToFloat(stored[column]);
    const bool counts_as_zero = std::fabs(weight) < kBFloat16WeightMin;
    return std::fma(counts_as_zero ? 0.0F : weight, BFloat16ToFloat(x[column]), sum);
  };
  float sum = 0;
  for (int64_t column = 0; column < shape.columns; column += 2) {
    if (column + 1 < shape.columns) {
      sum = add(column + 1, sum);
    }
    sum = add(column, sum);
  }
  return sum;
}

// Row `row` of `slice` times columns first_column.. of token `token`.
float Partial(const MatmulArgs& args, const PackedSlice& slice, int64_t row, int64_t token,
              int64_t first_column) {
  const std::byte* data = slice.data + row * BlocksOf(slice.shape).row_bytes;
  return VisitFormat(slice.shape.format, [&](auto block) {
    using Block = decltype(block);
    if (args.x != nullptr) {
      return FloatChain<Block>(slice.shape, data, args.x + token * args.x_stride + first_column);
    }
    if constexpr (Block::kFormat == WeightFormat::kBF16) {
      return PairChain(
          slice.shape, data,
          reinterpret_cast<const uint16_t*>(args.rounded) + token * args.columns + first_column);
    }
    if constexpr (InfoOf(Block::kFormat).is_quantized) {
      const QuantizedRow activations = RowOf(args.quantized, token, args.columns);
      return IntegerChain<Block>(slice.shape, data, activations.codes + first_column,
                                 activations.scales + first_column / kGroupValues);
    }
    __builtin_unreachable();  // the others have the float path only
  });
}

void Matmul(const Execution& execution, const MatmulArgs& args) {
  for (int o = 0; o < args.output_count; ++o) {
    const MatmulOutput& output = args.outputs[o];
    execution.pool->ParallelFor(output.rows, [&](int64_t row, int /*worker_index*/) {
      for (int64_t token = 0; token < args.tokens; ++token) {
        float leaves[kLeafCount];
        std::fill_n(leaves, kLeafCount, -0.0F);  // x + -0 is x: a missing leaf drops out
        int64_t first_column = 0;
        for (int i = 0; i < output.slice_count; ++i) {
          const PackedSlice& slice = output.slices[i];
          leaves[slice.leaf_index] = Partial(args, slice, row, token, first_column);
          first_column += slice.shape.columns;
        }
        output.y[token * output.y_stride + row] =
            ((leaves[0] + leaves[1]) + (leaves[2] + leaves[3])) +
            ((leaves[4] + leaves[5]) + (leaves[6] + leaves[7]));
      }
    });
  }
}

void Embedding(const Execution& execution, const EmbeddingArgs& args) {
  const SliceShape& shape = args.table.shape;
  const CoveringBlocks blocks = BlocksOf(shape);
  execution.pool->ParallelFor(args.tokens, [&](int64_t token, int /*worker_index*/) {
    const int64_t row = args.token_ids[token] - args.first_row;
    float* values = args.y + token * shape.columns;
    if (row >= 0 && row < shape.rows) {
      DecodeRow(shape.format, args.table.data + row * blocks.row_bytes, blocks.skipped,
                shape.columns, values);
    } else {
      std::fill_n(values, shape.columns, -0.0F);
    }
  });
}

int64_t SharedScratchBytes(int64_t /*tokens*/, int64_t /*query_heads*/, int64_t /*head_dim*/,
                           int64_t /*context*/) {
  return 0;
}

constexpr KernelTable kReferenceTable = {
    .name = "reference",
    .packed_bytes = PackedBytes,
    .quantized_bytes = QuantizedBytes,
    .rounded_bytes = RoundedBytes,
    .shared_scratch_bytes = SharedScratchBytes,
    .pack = Pack,
    .quantize = Quantize,
    .round = Round,
    .matmul = Matmul,
    .embedding = Embedding,
    .rms_norm = RmsNorm,
    .gated_activation = GatedActivation,
    .add = Add,
    .layer_norm = LayerNorm,
    .adjust = Adjust,
    .square_sums = SquareSums,
    .scale_rows = ScaleRows,
    .combine_rows = CombineRows,
    .rope_and_store = RopeAndStore,
    .attention = Attention,
    .argmax = Argmax,
};

}  // namespace

const KernelTable& ReferenceTable() { return kReferenceTable; }

}  // namespace trireme::kernels::reference
