// Checks of packing, quantisation, the matrix product and embedding rows.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/formats/decode.h"
#include "tests/kernels/check_harness.h"
#include "tests/kernels/random_weights.h"

namespace trireme::kernels::check {
namespace {

// One slice, packed for both tables.
struct SlicePair {
  SliceShape shape;
  int leaf_index;
  GuardedBytes packed;
  GuardedBytes reference_packed;
};

SlicePair PackBoth(Checker& checker, const SliceShape& shape, int leaf_index,
                   const StoredMatrix& matrix) {
  SlicePair pair{shape, leaf_index, GuardedBytes(checker.table.packed_bytes(shape)),
                 GuardedBytes(checker.reference.packed_bytes(shape))};
  PackArgs args{.shape = shape,
                .source = matrix.bytes.data(),
                .source_row_bytes = matrix.row_bytes,
                .packed = pair.packed.data()};
  checker.table.pack(args);
  args.packed = pair.reference_packed.data();
  checker.reference.pack(args);
  return pair;
}

// The matrices of one call, each cut into slices.
struct ProductCase {
  std::string name;
  int64_t columns;
  int64_t tokens;
  bool float_activations;                   // else what the outputs' format takes
  std::vector<int64_t> slice_columns = {};  // of every output; empty: one slice of all columns
  std::vector<int> leaf_indices = {};       // as slice_columns
  struct Output {
    WeightFormat format;
    int64_t rows;
  };
  std::vector<Output> outputs;
  int64_t first_column = 0;  // where the columns start in the stored matrix
  WeightFill fill = WeightFill::kOrdinary;
  bool hard_activations = false;
  float activation_size = 1;
};

// The activations of one product, in a table's layout.
struct Inputs {
  GuardedBytes quantized;
  GuardedBytes rounded;

  Inputs(const KernelTable& table, const Execution& execution, ActivationKind kind, const float* x,
         int64_t tokens, int64_t columns)
      : quantized(kind == ActivationKind::kInt8 ? table.quantized_bytes(tokens, columns) : 0),
        rounded(kind == ActivationKind::kBFloat16 ? table.rounded_bytes(tokens, columns) : 0) {
    if (kind == ActivationKind::kInt8) {
      table.quantize(execution, {.x = x,
                                 .tokens = tokens,
                                 .columns = columns,
                                 .x_stride = columns,
                                 .quantized = quantized.data()});
    } else if (kind == ActivationKind::kBFloat16) {
      table.round(execution, {.x = x,
                              .tokens = tokens,
                              .columns = columns,
                              .x_stride = columns,
                              .rounded = rounded.data()});
    }
  }

  MatmulArgs Args(ActivationKind kind, const float* x, int64_t tokens, int64_t columns) {
    return {.x = kind == ActivationKind::kFloat32 ? x : nullptr,
            .x_stride = columns,
            .quantized = kind == ActivationKind::kInt8 ? quantized.data() : nullptr,
            .rounded = kind == ActivationKind::kBFloat16 ? rounded.data() : nullptr,
            .tokens = tokens,
            .columns = columns,
            .outputs = {},
            .output_count = 0};
  }
};

void MakeHard(float* x, int64_t tokens, int64_t columns) {
  const float kHard[] = {0.0F,
                         -0.0F,
                         1e-40F,
                         -3e38F,
                         std::numeric_limits<float>::infinity(),
                         std::numeric_limits<float>::quiet_NaN()};
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t first = 0; first + kGroupValues <= columns; first += kGroupValues) {
      const int64_t kind = (t + first / kGroupValues) % 8;
      float* group = x + t * columns + first;
      if (kind < 6) {
        group[(7 * t) % kGroupValues] = kHard[kind];
      } else if (kind == 6) {
        std::fill_n(group, kGroupValues, 0.0F);
      } else {
        std::fill_n(group, kGroupValues, 1e-41F);
      }
    }
  }
}

struct Product {
  std::vector<SlicePair> slices;
  int64_t rows;
};

std::vector<Product> MakeProducts(Checker& checker, Random& random, const ProductCase& c) {
  std::vector<int64_t> slice_columns = c.slice_columns;
  std::vector<int> leaves = c.leaf_indices;
  if (slice_columns.empty() && c.columns > 0) {
    slice_columns = {c.columns};
    leaves = {0};
  }
  std::vector<Product> products;
  for (const ProductCase::Output& output : c.outputs) {
    const StoredMatrix matrix =
        RandomMatrix(random, output.format, output.rows, c.first_column + c.columns, c.fill);
    Product product;
    product.rows = output.rows;
    int64_t first_column = c.first_column;
    for (size_t i = 0; i < slice_columns.size(); ++i) {
      const SliceShape shape{.format = output.format,
                             .rows = output.rows,
                             .columns = slice_columns[i],
                             .first_column = first_column};
      product.slices.push_back(PackBoth(checker, shape, leaves[i], matrix));
      first_column += slice_columns[i];
    }
    products.push_back(std::move(product));
  }
  return products;
}

// Runs one table on its own copies and returns y of all outputs, one after another.
std::vector<float> RunProduct(Checker& checker, bool is_reference, const ProductCase& c,
                              std::vector<Product>& products, std::vector<float>& x) {
  const KernelTable& table = is_reference ? checker.reference : checker.table;
  const Execution& execution =
      is_reference ? checker.reference_execution.get() : checker.execution.get();
  const ActivationKind kind = c.float_activations ? ActivationKind::kFloat32
                                                  : ActivationKindOf(InfoOf(c.outputs[0].format));
  Inputs inputs(table, execution, kind, x.data(), c.tokens, c.columns);
  MatmulArgs args = inputs.Args(kind, x.data(), c.tokens, c.columns);
  args.output_count = static_cast<int>(products.size());
  std::vector<std::vector<PackedSlice>> slices;
  std::vector<Guarded<float>> results;
  slices.reserve(products.size());
  results.reserve(products.size());
  for (size_t o = 0; o < products.size(); ++o) {
    slices.emplace_back();
    for (SlicePair& pair : products[o].slices) {
      slices.back().push_back({pair.shape, pair.leaf_index,
                               is_reference ? pair.reference_packed.data() : pair.packed.data()});
    }
    const int64_t stride = products[o].rows + 3;
    results.emplace_back(c.tokens * stride);
    args.outputs[o] = {.slices = slices.back().data(),
                       .slice_count = static_cast<int>(slices.back().size()),
                       .rows = products[o].rows,
                       .y = results.back().data(),
                       .y_stride = stride};
  }
  table.matmul(execution, args);
  std::vector<float> all;
  for (size_t o = 0; o < products.size(); ++o) {
    checker.Expect(results[o].GuardsAreIntact(), c.name + ": guards of y");
    all.insert(all.end(), results[o].data(), results[o].data() + results[o].count());
    for (SlicePair& pair : products[o].slices) {
      checker.Expect(pair.packed.GuardsAreIntact() && pair.reference_packed.GuardsAreIntact(),
                     c.name + ": guards of the packed slice");
    }
  }
  checker.Expect(inputs.quantized.GuardsAreIntact() && inputs.rounded.GuardsAreIntact(),
                 c.name + ": guards of the activations");
  return all;
}

void CheckProduct(Checker& checker, ProductCase c) {
  c.name = "matmul " + c.name + " tokens " + std::to_string(c.tokens) + " columns " +
           std::to_string(c.columns) + " first " + std::to_string(c.first_column) +
           (c.float_activations ? " float" : "");
  for (const ProductCase::Output& output : c.outputs) {
    c.name += std::string(" ") + InfoOf(output.format).name + "x" + std::to_string(output.rows);
  }
  Random random(static_cast<uint64_t>(c.columns * 131 + c.tokens));
  std::vector<Product> products = MakeProducts(checker, random, c);
  std::vector<float> x(static_cast<size_t>(c.tokens * c.columns));
  random.FillNormal(x.data(), c.tokens * c.columns);
  for (float& value : x) {
    value *= c.activation_size;
  }
  if (c.hard_activations) {
    MakeHard(x.data(), c.tokens, c.columns);
  }
  if (c.fill == WeightFill::kExtremeCodes) {
    // All codes of some tokens at the same end of their range too.
    for (int64_t t = 1; t < c.tokens; ++t) {
      std::fill_n(x.data() + t * c.columns, c.columns, t % 2 == 0 ? -1.0F : 1.0F);
    }
  }
  const std::vector<float> expected = RunProduct(checker, true, c, products, x);
  const std::vector<float> actual = RunProduct(checker, false, c, products, x);
  checker.ExpectSameBits(actual.data(), expected.data(), static_cast<int64_t>(expected.size()),
                         c.name);
}

void CheckEveryFormat(Checker& checker) {
  for (const WeightFormatInfo& info : kWeightFormats) {
    const int64_t odd = HasGroups(info) ? 0 : 5;
    for (const bool float_activations : {false, true}) {
      if (ActivationKindOf(info) == ActivationKind::kFloat32 && !float_activations) {
        continue;
      }
      for (const int64_t tokens : {1, 2, 3, 4, 5, 6, 7, 8, 13}) {
        for (const int64_t rows : {1, 16, 33, 50}) {
          CheckProduct(checker, {.name = "shape",
                                 .columns = 288 + odd,
                                 .tokens = tokens,
                                 .float_activations = float_activations,
                                 .outputs = {{info.format, rows}}});
        }
      }
      for (const int64_t tokens : {1, 6, 16, 131, 300}) {
        CheckProduct(checker, {.name = "many",
                               .columns = 576 + odd,
                               .tokens = tokens,
                               .float_activations = float_activations,
                               .outputs = {{info.format, 37}}});
      }
      // A slice that starts inside a superblock, at each of its groups.
      for (const int64_t first_column : {32, 96, 160, 224, 256}) {
        CheckProduct(checker, {.name = "start",
                               .columns = 320 + odd,
                               .tokens = 1 + first_column / 32,
                               .float_activations = float_activations,
                               .outputs = {{info.format, 20}},
                               .first_column = first_column});
      }
      CheckProduct(checker, {.name = "one group",
                             .columns = 32,
                             .tokens = 2,
                             .float_activations = float_activations,
                             .outputs = {{info.format, 16}},
                             .first_column = 64});
      CheckProduct(checker, {.name = "any bits",
                             .columns = 512,
                             .tokens = 9,
                             .float_activations = float_activations,
                             .outputs = {{info.format, 48}},
                             .fill = WeightFill::kAnyBits});
      CheckProduct(checker, {.name = "tiny scales",
                             .columns = 512,
                             .tokens = 17,
                             .float_activations = float_activations,
                             .outputs = {{info.format, 48}},
                             .fill = WeightFill::kTinyScales});
      CheckProduct(checker, {.name = "hard activations",
                             .columns = 512,
                             .tokens = 9,
                             .float_activations = float_activations,
                             .outputs = {{info.format, 48}},
                             .hard_activations = true});
      CheckProduct(checker, {.name = "extreme codes",
                             .columns = 512,
                             .tokens = 3,
                             .float_activations = float_activations,
                             .outputs = {{info.format, 32}},
                             .fill = WeightFill::kExtremeCodes});
    }
  }
}

void CheckLeaves(Checker& checker) {
  const std::vector<std::vector<int>> kLeafSets = {
      {0, 1, 2, 3, 4, 5, 6, 7}, {0, 2, 3, 5, 7}, {3}, {4, 5, 6, 7}, {1, 6}};
  for (const WeightFormat format :
       {WeightFormat::kQ4_1, WeightFormat::kQ6_K, WeightFormat::kQ2_K, WeightFormat::kIQ3_S,
        WeightFormat::kMXFP4, WeightFormat::kNVFP4, WeightFormat::kBF16, WeightFormat::kF8_E4M3,
        WeightFormat::kMXFP8, WeightFormat::kNF4, WeightFormat::kNVFP4_DIV}) {
    for (const std::vector<int>& leaves : kLeafSets) {
      for (const int64_t tokens : {1, 5, 40}) {
        ProductCase c{.name = "leaves",
                      .columns = 0,
                      .tokens = tokens,
                      .float_activations = false,
                      .outputs = {{format, 70}}};
        for (const int leaf : leaves) {
          c.slice_columns.push_back(leaf == leaves.front() ? 128 : 64);
          c.columns += c.slice_columns.back();
        }
        c.leaf_indices = leaves;
        CheckProduct(checker, c);
      }
    }
  }
  for (const int64_t tokens : {1, 20}) {
    CheckProduct(checker, {.name = "no leaf",
                           .columns = 0,
                           .tokens = tokens,
                           .float_activations = false,
                           .outputs = {{WeightFormat::kQ8_0, 37}}});
  }
}

void CheckSeveralOutputs(Checker& checker) {
  for (const int64_t tokens : {1, 4, 70, 260}) {
    CheckProduct(checker, {.name = "three outputs",
                           .columns = 576,
                           .tokens = tokens,
                           .float_activations = false,
                           .outputs = {{WeightFormat::kQ4_1, 576},
                                       {WeightFormat::kQ8_0, 192},
                                       {WeightFormat::kQ6_K, 40}}});
    CheckProduct(checker, {.name = "two outputs",
                           .columns = 256,
                           .tokens = tokens,
                           .float_activations = true,
                           .outputs = {{WeightFormat::kBF16, 96}, {WeightFormat::kQ5_K, 33}}});
    CheckProduct(checker, {.name = "two outputs",
                           .columns = 357,
                           .tokens = tokens,
                           .float_activations = false,
                           .outputs = {{WeightFormat::kBF16, 96}, {WeightFormat::kBF16, 33}}});
  }
}

// BF16 weights and bfloat16 activations at the ends of their range: some count as 0, some products
// are as small as float32 has without loss, some sums overflow.
void CheckPairs(Checker& checker) {
  for (const int64_t tokens : {1, 7, 12, 13, 25, 60, 130}) {
    for (const int64_t columns : {1, 2, 31, 95, 1057}) {
      for (const float size : {1.0F, 2 * kBFloat16ActivationMin, 0x1p120F, 0x1p127F}) {
        for (const WeightFill fill : {WeightFill::kOrdinary, WeightFill::kTinyScales}) {
          CheckProduct(checker, {.name = "pairs of size " + std::to_string(size),
                                 .columns = columns,
                                 .tokens = tokens,
                                 .float_activations = false,
                                 .outputs = {{WeightFormat::kBF16, 34}},
                                 .fill = fill,
                                 .activation_size = size});
        }
      }
    }
  }
}

// Floating point numbers in groups multiply as the float32 matrix of their values does, in the same
// leaves, for every count of tokens.
void CheckNumbersMultiplyAsF32(Checker& checker) {
  constexpr int64_t kRows = 35;
  constexpr int64_t kColumns = 352;
  constexpr int64_t kTokensMax = 65;
  const std::vector<int64_t> kLeafColumns = {96, 160, 32, 64};  // starts and ends in superblocks
  for (const WeightFormatInfo& info : kWeightFormats) {
    if (!HasGroups(info) || info.is_quantized) {
      continue;
    }
    for (const WeightFill fill : {WeightFill::kOrdinary, WeightFill::kTinyScales}) {
      Random random(31);
      const StoredMatrix matrix = RandomMatrix(random, info.format, kRows, kColumns, fill);
      StoredMatrix floats{.bytes = std::vector<std::byte>(kRows * kColumns * sizeof(float)),
                          .row_bytes = kColumns * sizeof(float)};
      for (int64_t row = 0; row < kRows; ++row) {
        DecodeRow(info.format, matrix.bytes.data() + row * matrix.row_bytes, 0, kColumns,
                  reinterpret_cast<float*>(floats.bytes.data()) + row * kColumns);
      }
      std::vector<SlicePair> pairs;
      std::vector<PackedSlice> slices[2];
      pairs.reserve(2 * kLeafColumns.size());
      for (const bool is_decoded : {false, true}) {
        int64_t first_column = 0;
        for (size_t leaf = 0; leaf < kLeafColumns.size(); ++leaf) {
          const WeightFormat format = is_decoded ? WeightFormat::kF32 : info.format;
          pairs.push_back(PackBoth(checker, {format, kRows, kLeafColumns[leaf], first_column},
                                   static_cast<int>(leaf), is_decoded ? floats : matrix));
          slices[is_decoded].push_back(
              {pairs.back().shape, pairs.back().leaf_index, pairs.back().packed.data()});
          first_column += kLeafColumns[leaf];
        }
      }
      std::vector<float> x(kTokensMax * kColumns);
      random.FillNormal(x.data(), kTokensMax * kColumns);
      for (int64_t tokens = 1; tokens <= kTokensMax; ++tokens) {
        std::vector<float> y[2];
        for (const bool is_decoded : {false, true}) {
          y[is_decoded].resize(static_cast<size_t>(tokens * kRows));
          checker.table.matmul(
              checker.execution.get(),
              {.x = x.data(),
               .x_stride = kColumns,
               .quantized = nullptr,
               .tokens = tokens,
               .columns = kColumns,
               .outputs = {{slices[is_decoded].data(), static_cast<int>(kLeafColumns.size()), kRows,
                            y[is_decoded].data(), kRows}},
               .output_count = 1});
        }
        checker.ExpectSameBits(
            y[0].data(), y[1].data(), tokens * kRows,
            std::string("as F32 ") + info.name + " tokens " + std::to_string(tokens));
      }
    }
  }
}

// A token's result must not depend on its neighbours: each alone equals all together.
void CheckBatchInvariance(Checker& checker) {
  constexpr int64_t kTokens = 65;
  constexpr int64_t kColumns = 160;
  constexpr int64_t kRows = 18;
  for (const WeightFormatInfo& info : kWeightFormats) {
    Random random(77);
    const StoredMatrix matrix =
        RandomMatrix(random, info.format, kRows, kColumns, WeightFill::kOrdinary);
    SlicePair pair = PackBoth(checker, {info.format, kRows, kColumns, 0}, 0, matrix);
    std::vector<float> x(kTokens * kColumns);
    random.FillNormal(x.data(), kTokens * kColumns);
    const PackedSlice slice{pair.shape, 0, pair.packed.data()};
    const Execution& execution = checker.execution.get();
    const auto multiply = [&](int64_t first, int64_t tokens, float* y) {
      const ActivationKind kind = ActivationKindOf(info);
      const float* const rows = x.data() + first * kColumns;
      Inputs inputs(checker.table, execution, kind, rows, tokens, kColumns);
      MatmulArgs args = inputs.Args(kind, rows, tokens, kColumns);
      args.outputs[0] = {&slice, 1, kRows, y, kRows};
      args.output_count = 1;
      checker.table.matmul(execution, args);
    };
    std::vector<float> together(kTokens * kRows);
    std::vector<float> alone(kTokens * kRows);
    for (int64_t t = 0; t < kTokens; ++t) {
      multiply(t, 1, alone.data() + t * kRows);
    }
    for (int64_t tokens = 1; tokens <= kTokens; ++tokens) {
      multiply(0, tokens, together.data());
      checker.ExpectSameBits(together.data(), alone.data(), tokens * kRows,
                             "batch invariance " + std::to_string(tokens) + " tokens " + info.name);
    }
  }
}

void CheckEmbedding(Checker& checker) {
  constexpr int64_t kRows = 45;
  constexpr int64_t kFirstRow = 100;
  const std::vector<int32_t> token_ids = {100, 144, 145, 99, 117, 116, 0, 131, 144, 1 << 30};
  const int64_t tokens = static_cast<int64_t>(token_ids.size());
  for (const WeightFormatInfo& info : kWeightFormats) {
    const int64_t columns = HasGroups(info) ? 512 : 67;
    Random random(5);
    const StoredMatrix matrix =
        RandomMatrix(random, info.format, kRows, columns, WeightFill::kAnyBits);
    SlicePair pair = PackBoth(checker, {info.format, kRows, columns, 0}, 0, matrix);
    Guarded<float> actual(tokens * columns);
    checker.table.embedding(checker.execution.get(), {.table = {pair.shape, 0, pair.packed.data()},
                                                      .first_row = kFirstRow,
                                                      .token_ids = token_ids.data(),
                                                      .tokens = tokens,
                                                      .y = actual.data()});
    std::vector<float> expected(static_cast<size_t>(tokens * columns), -0.0F);
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t row = token_ids[static_cast<size_t>(t)] - kFirstRow;
      if (row >= 0 && row < kRows) {
        DecodeRow(info.format, matrix.bytes.data() + row * matrix.row_bytes, 0, columns,
                  expected.data() + t * columns);
      }
    }
    checker.ExpectSameBits(actual.data(), expected.data(), tokens * columns,
                           std::string("embedding ") + info.name);
    checker.Expect(actual.GuardsAreIntact(), std::string("embedding guards ") + info.name);
  }
}

}  // namespace

void CheckMatmul(Checker& checker) {
  CheckEveryFormat(checker);
  CheckLeaves(checker);
  CheckSeveralOutputs(checker);
  CheckPairs(checker);
  CheckNumbersMultiplyAsF32(checker);
  CheckBatchInvariance(checker);
  CheckEmbedding(checker);
}

}  // namespace trireme::kernels::check
