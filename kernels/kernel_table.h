// THE interface of the arithmetic: one function pointer per op, plain argument structs, shapes
// beside every pointer. Table "reference" is the definition; all others give the same bits
// (check_kernels proves it), so a machine's table changes speed and nothing else.
//
// The arithmetic, once for all tables (docs/exactness.md has the reasons):
//  * A row of a result depends on its own inputs only, never on how many tokens are multiplied with
//  it.
//  * Every "multiply and add" below is a fused multiply-add in float32; "lanes" are independent
//  chains.
//  * Quantised matrix times quantised activations, per output: acc = +0; for each group g of 32
//  columns in order:
//      acc = fma(float(I_g) * d_g, s_g, acc); with a minimum: acc = fma(m_g, float(A_g) * d_g,
//      acc).
//    I_g is an exact int32, the sum of (code - zero point) * a over the group; s_g and m_g are the
//    weight's scale and minimum as float32 (formats/group_scales.h; Q4_K, Q5_K: d * S and
//    -(dmin * M), both exact products); A_g is the exact sum of a; a and d_g are the activation
//    codes and scale. Where half groups of 16 have scales f_0 and f_1 of their own (Q6_K), I_g =
//    fma(float(I_1), f_1, float(I_0) * f_0); where they have minima, the second step is taken for
//    each half group in order.
//  * Activations quantise per group of 32: maximum = max |x|; d = maximum / 127; a =
//  round-to-even(x * (127 / maximum)),
//    as float32 operations in this order; all zero: d = 0, a = 0.
//  * BF16 matrix times bfloat16 activations, per output, pairs of columns in order, the second of a
//  pair first:
//      acc = fma(w[2p+1], x[2p+1], acc); acc = fma(w[2p], x[2p], acc).
//    x is the activation rounded to nearest even. Weights below 2^-63 and rounded activations below
//    2^-49 in magnitude count as 0. So every product and every sum is a multiple of 2^-126, none is
//    denormal, and instructions that flush such numbers give the bits of those that do not.
//  * Float path (F32, F16, groups of floating point numbers such as F8_E4M3 and NF4, or any
//  format when float activations are asked for), per output, columns in order:
//      acc = fma(w, x, acc), w the decoded float32: exact as specs/gguf-quants.md has it; a number
//      times a float32 scale is rounded once, whatever the table and however many tokens.
//  * A row-split matrix comes as up to 8 leaves (runs of columns). Each leaf is its own chain from
//  +0; the partials add
//    in the order of the binary tree ((0+1)+(2+3))+((4+5)+(6+7)) by leaf_index; missing leaves drop
//    out, and if all of them are missing the result is -0 (the neutral element of addition).
//  * Row sums (RMSNorm) use 16 lanes: lane i sums columns i, i + 16, ...; then lane i += lane i +
//  8, + 4, + 2, + 1.
//  * exp is one polynomial (kernels/reference/math.h), the same operations in every table.
//  * Attention: keys are cut into tiles of kAttentionTileTokens at absolute positions. Each tile
//  starts afresh:
//      score_j = chain over head_dim of fma(q_d * scale, k_jd, acc); m = max over visible j; p_j =
//      exp(score_j - m); l = sum of p_j in 16 lanes (lane j mod 16 in order), then folded as row
//      sums are; o_d = chain over j of fma(p_j, v_jd, acc).
//    Tiles merge left to right by position: (m, l, o) of the running state and the tile, scaled by
//    exp(m_old - m_new). A soft cap changes scores before the maximum; a sink merges last, as a
//    tile with m = sink, l = 1, o = 0. Values of kInt4 are transformed, and so is the output in the
//    end, which takes that back.
#ifndef TRIREME_KERNELS_KERNEL_TABLE_H_
#define TRIREME_KERNELS_KERNEL_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/execution.h"
#include "kernels/formats/int4_layout.h"
#include "kernels/formats/weight_format.h"

namespace trireme::kernels {

inline constexpr int kGroupValues = 32;           // activation values that share a scale
inline constexpr int kLeafCount = 8;              // leaves of a row-split matrix
inline constexpr int kBlockTokens = 16;           // token slots of one KV block
inline constexpr int kAttentionTileTokens = 128;  // keys of one tile; a whole number of KV blocks
// Magnitudes that BF16 weights and bfloat16 activations have at least, or count as 0.
inline constexpr float kBFloat16WeightMin = 0x1p-63F;
inline constexpr float kBFloat16ActivationMin = 0x1p-49F;
inline constexpr int kMatmulOutputsMax =
    3;  // matrices that one call multiplies with the same input
static_assert(kAttentionTileTokens % kBlockTokens == 0);

// ---- weights
// -------------------------------------------------------------------------------------------------------

// A run of columns of a run of rows of one tensor, before and after packing.
// first_column and columns are multiples of 32 for formats with groups (only the last run may end
// anywhere for F32, F16, BF16).
struct SliceShape {
  WeightFormat format = WeightFormat::kF32;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t first_column = 0;  // in the tensor; a slice may start inside a superblock
};

struct PackArgs {
  SliceShape shape;
  const std::byte* source =
      nullptr;  // storage of the slice's first row, from the tensor's column 0, any alignment
  int64_t source_row_bytes = 0;  // bytes from one row to the next
  std::byte* packed = nullptr;   // packed_bytes(shape) bytes, 64-byte aligned
};

struct PackedSlice {
  SliceShape shape;
  int leaf_index = 0;               // 0..7 in a row-split matrix, else 0
  const std::byte* data = nullptr;  // the table's layout
};

// ---- matrix product
// ------------------------------------------------------------------------------------------------

struct QuantizeArgs {
  const float* x = nullptr;  // [tokens, columns]
  int64_t tokens = 0;
  int64_t columns = 0;  // a multiple of 32
  int64_t x_stride = 0;
  std::byte* quantized =
      nullptr;  // quantized_bytes(tokens, columns) bytes, 64-byte aligned; the table's layout
};

struct RoundArgs {
  const float* x = nullptr;  // [tokens, columns]
  int64_t tokens = 0;
  int64_t columns = 0;
  int64_t x_stride = 0;
  std::byte* rounded =
      nullptr;  // rounded_bytes(tokens, columns) bytes, 64-byte aligned; the table's layout
};

// y[token, row] = sum over columns of weight[row, column] * x[token, column]. The activations are
// x, or where that is null, quantized or rounded.
struct MatmulOutput {
  const PackedSlice* slices =
      nullptr;  // [slice_count], by rising leaf_index; all of the same row count and format
  int slice_count =
      0;  // columns of slice i follow those of slice i - 1 in x; 0: y is filled with -0
  int64_t rows = 0;
  float* y = nullptr;  // [tokens, rows]
  int64_t y_stride = 0;
};

struct MatmulArgs {
  const float* x = nullptr;  // [tokens, columns]
  int64_t x_stride = 0;
  // Of the same rows, as `quantize` wrote them; outputs are of quantised formats. May use what
  // quantized_bytes asked for beyond the rows.
  std::byte* quantized = nullptr;
  // Of the same rows, as `round` wrote them; outputs are of BF16.
  const std::byte* rounded = nullptr;
  int64_t tokens = 0;
  int64_t columns = 0;  // columns of x, the sum over an output's slices
  MatmulOutput outputs[kMatmulOutputsMax];
  int output_count = 0;
};

// y[token] = row token_ids[token] of the matrix as float32, or -0 everywhere when this slice does
// not hold that row.
struct EmbeddingArgs {
  PackedSlice table;  // [rows, columns], rows first_row .. first_row + rows of the vocabulary
  int64_t first_row = 0;
  const int32_t* token_ids = nullptr;  // [tokens]
  int64_t tokens = 0;
  float* y = nullptr;  // [tokens, columns]
};

// ---- rows
// ----------------------------------------------------------------------------------------------------------

// With delta: x += delta first. Then y = x / sqrt(mean(x^2) + epsilon) * gain.
struct RmsNormArgs {
  float* x = nullptr;            // [tokens, columns], updated only where delta is given
  const float* delta = nullptr;  // [tokens, columns] or null
  const float* gain = nullptr;   // [columns]
  float epsilon = 0;
  int64_t tokens = 0;
  int64_t columns = 0;
  float* y = nullptr;  // [tokens, columns]
  std::byte* quantized =
      nullptr;  // when not null y is also quantised into it (columns a multiple of 32)
};

// With delta: x += delta first. Then c = x - mean(x), y = c / sqrt(mean(c^2) + epsilon) * gain +
// bias.
struct LayerNormArgs {
  float* x = nullptr;            // [tokens, columns], updated only where delta is given
  const float* delta = nullptr;  // [tokens, columns] or null
  const float* gain = nullptr;   // [columns]
  const float* bias = nullptr;   // [columns] or null
  float epsilon = 0;
  int64_t tokens = 0;
  int64_t columns = 0;
  float* y = nullptr;              // [tokens, columns]
  std::byte* quantized = nullptr;  // when not null y is also quantised into it
};

enum class Activation : uint8_t {
  kSilu,          // z / (1 + exp(-z))
  kGeluTanh,      // z / (1 + exp(-2 u)), u = sqrt(2 / pi) (z + 0.044715 z^3)
  kRelu2,         // max(z, 0)^2
  kClampedSwish,  // gpt-oss: g = min(z, limit), u = clamp(up, -limit, limit); g / (1 + exp(-alpha
                  // g)) * (u + 1)
};

// y = activation(gate) * up, or activation(gate) where up is null.
struct GatedActivationArgs {
  Activation activation = Activation::kSilu;
  float swish_limit = 7;        // of kClampedSwish
  float swish_alpha = 1.702F;   // of kClampedSwish
  const float* gate = nullptr;  // [tokens, columns]
  const float* up = nullptr;    // [tokens, columns] or null; kClampedSwish needs it
  int64_t tokens = 0;
  int64_t columns = 0;
  float* y = nullptr;              // [tokens, columns]; may be gate
  std::byte* quantized = nullptr;  // when not null y is also quantised into it
};

// x += delta over count values.
struct AddArgs {
  float* x = nullptr;
  const float* delta = nullptr;
  int64_t count = 0;
};

// x = cap(scale * (x + bias)), cap(z) = soft_cap * tanh(z / soft_cap), or z where soft_cap is 0.
struct AdjustArgs {
  float* x = nullptr;           // [tokens, columns], in place
  const float* bias = nullptr;  // [columns] or null
  float scale = 1;
  float soft_cap = 0;
  int64_t tokens = 0;
  int64_t columns = 0;
};

// The sums of squares of runs of columns, for a norm over a row that several ranks share:
// sums[token * sums_stride + segment] = sum over the segment's columns of x^2, lanes as in row
// sums.
struct SquareSumsArgs {
  const float* x =
      nullptr;  // [tokens, segments * segment_columns], the last segment may be shorter
  int64_t tokens = 0;
  int64_t columns = 0;
  int64_t segment_columns = 0;
  float* sums = nullptr;  // [tokens, sums_stride]
  int64_t sums_stride = 0;
};

// y = x / root[token] * gain.
struct ScaleRowsArgs {
  const float* x = nullptr;      // [tokens, columns]
  const float* roots = nullptr;  // [tokens]
  const float* gain = nullptr;   // [columns]
  int64_t tokens = 0;
  int64_t columns = 0;
  float* y = nullptr;              // [tokens, columns]; may be x
  std::byte* quantized = nullptr;  // when not null y is also quantised into it
};

// y[token] = sum over i in order of weights[token, i] * x[rows[token, i]]: the first is a product,
// the others fused multiply-adds.
struct CombineRowsArgs {
  const float* x = nullptr;        // [any, columns]
  const int32_t* rows = nullptr;   // [tokens, terms], indices into x
  const float* weights = nullptr;  // [tokens, terms]
  int64_t terms = 0;               // >= 1
  int64_t tokens = 0;
  int64_t columns = 0;
  float* y = nullptr;  // [tokens, columns]; not x
};

// ---- attention
// -----------------------------------------------------------------------------------------------------

enum class KeyValueFormat : uint8_t {
  kF16,
  kF32,
  kBF16,
  kInt8,  // with a scale for each slot and head: formats/key_value_codes.h
  kE4M3,  // the same of 8-bit floats
  kInt4,  // transformed, codes of 6 and 5 bits: formats/int4_rows.h
};
enum class RopeStyle : uint8_t {
  kNone,
  kInterleaved,  // pairs (x[2p], x[2p+1])
  kHalfSplit,    // pairs (x[p], x[p + rotated/2])
};

// One layer's cache on one rank: [blocks][key_value_heads] of {keys [head_dim][kBlockTokens],
// values [kBlockTokens][head_dim]} and, where the format has them, float32 {key scales
// [kBlockTokens], value scales [kBlockTokens]}. Keys lie with the tokens of a block side by side,
// so that lanes are keys. kInt4 has a layout of its own: formats/int4_layout.h.
struct KeyValueCache {
  KeyValueFormat format = KeyValueFormat::kF16;
  std::byte* data = nullptr;
  int64_t key_value_heads = 0;
  int64_t head_dim = 0;

  // Of a format whose values take whole bytes.
  int64_t ElementBytes() const {
    switch (format) {
      case KeyValueFormat::kF32:
        return 4;
      case KeyValueFormat::kF16:
      case KeyValueFormat::kBF16:
        return 2;
      case KeyValueFormat::kInt8:
      case KeyValueFormat::kE4M3:
        return 1;
      case KeyValueFormat::kInt4:
        return 0;
    }
    return 0;
  }
  bool HasScales() const {
    return format == KeyValueFormat::kInt8 || format == KeyValueFormat::kE4M3;
  }
  int64_t ScalesOffset() const { return 2 * head_dim * kBlockTokens * ElementBytes(); }
  float* Scales(std::byte* head) const { return reinterpret_cast<float*>(head + ScalesOffset()); }
  const float* Scales(const std::byte* head) const {
    return reinterpret_cast<const float*>(head + ScalesOffset());
  }
  int64_t HeadBytes() const {
    if (format == KeyValueFormat::kInt4) {
      return Int4Layout{.head_dim = head_dim, .tokens = kBlockTokens}.Bytes();
    }
    return ScalesOffset() +
           (HasScales() ? 2 * kBlockTokens * static_cast<int64_t>(sizeof(float)) : 0);
  }
  int64_t BlockBytes() const { return key_value_heads * HeadBytes(); }
};

// Rotates query and key rows by their positions and writes keys and values into their slots. With a
// cache of kInt4, query, key and value are transformed (formats/hadamard.h) after it.
struct RopeAndStoreArgs {
  RopeStyle style = RopeStyle::kInterleaved;
  int64_t rotated_dim = 0;         // <= head_dim, even
  const float* cosines = nullptr;  // [tokens, rotated_dim / 2]
  const float* sines = nullptr;    // [tokens, rotated_dim / 2]
  int64_t tokens = 0;
  float* query = nullptr;  // [tokens, query_heads, head_dim], rotated in place
  int64_t query_heads = 0;
  float* key = nullptr;    // [tokens, key_value_heads, head_dim], rotated in place
  float* value = nullptr;  // [tokens, key_value_heads, head_dim], changed by kInt4 only
  KeyValueCache cache;
  const int64_t* slots = nullptr;  // [tokens]: block index * kBlockTokens + position in the block
};

// A run of new tokens of one sequence, their keys already stored. Query row i sits at position
// first_position + i and sees key j iff j <= its position and (window == 0 or position - j <
// window).
struct AttentionSequence {
  int64_t first_row = 0;  // of query and output
  int64_t rows = 0;
  int64_t first_position = 0;
  const int32_t* block_table =
      nullptr;  // [ceil((first_position + rows) / kBlockTokens)] block indices
};

struct AttentionArgs {
  const AttentionSequence* sequences = nullptr;  // [sequence_count]
  int64_t sequence_count = 0;
  const float* query = nullptr;  // [tokens, query_heads, head_dim], as rope_and_store left it
  int64_t query_heads = 0;
  const int32_t* key_value_head_of =
      nullptr;         // [query_heads]: local key/value head of each local query head, rising
  float scale = 0;     // multiplies q before the dot products
  int64_t window = 0;  // 0: none
  float soft_cap = 0;  // scores become soft_cap * tanh(score / soft_cap); 0: none
  const float* sinks =
      nullptr;  // [query_heads] or null: a score that takes part in the denominator only
  KeyValueCache cache;
  float* output = nullptr;  // [tokens, query_heads, head_dim]
};

// ---- logits
// --------------------------------------------------------------------------------------------------------

struct ArgmaxArgs {
  const float* x = nullptr;  // [rows, columns]
  int64_t rows = 0;
  int64_t columns = 0;
  int32_t* index = nullptr;  // [rows]: lowest index of the largest value; NaN never wins
  float* maximum = nullptr;  // [rows]
};

// ---- the table
// -----------------------------------------------------------------------------------------------------

struct KernelTable {
  const char* name = nullptr;

  // Sizes in bytes; pure functions, callable before anything is loaded.
  int64_t (*packed_bytes)(const SliceShape& shape) = nullptr;
  int64_t (*quantized_bytes)(int64_t tokens, int64_t columns) = nullptr;
  int64_t (*rounded_bytes)(int64_t tokens, int64_t columns) = nullptr;
  // Shared scratch that attention over `tokens` query rows, `query_heads` and contexts of `context`
  // positions may need.
  int64_t (*shared_scratch_bytes)(int64_t tokens, int64_t query_heads, int64_t head_dim,
                                  int64_t context) = nullptr;

  // Single threaded: a loader calls it from several threads on different rows or slices.
  void (*pack)(const PackArgs& args) = nullptr;

  void (*quantize)(const Execution& execution, const QuantizeArgs& args) = nullptr;
  void (*round)(const Execution& execution, const RoundArgs& args) = nullptr;  // to bfloat16
  void (*matmul)(const Execution& execution, const MatmulArgs& args) = nullptr;
  void (*embedding)(const Execution& execution, const EmbeddingArgs& args) = nullptr;
  void (*rms_norm)(const Execution& execution, const RmsNormArgs& args) = nullptr;
  void (*gated_activation)(const Execution& execution, const GatedActivationArgs& args) = nullptr;
  void (*add)(const Execution& execution, const AddArgs& args) = nullptr;
  void (*layer_norm)(const Execution& execution, const LayerNormArgs& args) = nullptr;
  void (*adjust)(const Execution& execution, const AdjustArgs& args) = nullptr;
  void (*square_sums)(const Execution& execution, const SquareSumsArgs& args) = nullptr;
  void (*scale_rows)(const Execution& execution, const ScaleRowsArgs& args) = nullptr;
  void (*combine_rows)(const Execution& execution, const CombineRowsArgs& args) = nullptr;
  void (*rope_and_store)(const Execution& execution, const RopeAndStoreArgs& args) = nullptr;
  void (*attention)(const Execution& execution, const AttentionArgs& args) = nullptr;
  void (*argmax)(const Execution& execution, const ArgmaxArgs& args) = nullptr;
};

// Every table that this machine can run, the best one first; "reference" is always there, last.
struct KernelTableList {
  const KernelTable* const* tables = nullptr;
  int count = 0;
  const char* missing = "";  // why a table that the processor could run is not among them, or empty
};
KernelTableList RunnableKernelTables();

// The named table, or the best one for an empty name; null when no table has that name or this
// machine cannot run it.
const KernelTable* FindKernelTable(const char* name);

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_KERNEL_TABLE_H_
