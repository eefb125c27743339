// Times of the matrix product on the shapes of SmolLM2-135M, and on one larger matrix in every
// format.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "tests/kernels/check_harness.h"
#include "tests/kernels/random_weights.h"

namespace trireme::kernels::check {
namespace {

// At least this much packed weight per pass, so that no cache keeps it.
constexpr int64_t kColdBytes = int64_t{160} << 20;

struct Layer {
  const char* name;
  WeightFormat format;
  int64_t columns;
  std::vector<int64_t> rows;  // of each output
  int leaves;
};

struct Copy {
  std::vector<GuardedBytes> packed;              // one for each output and leaf
  std::vector<std::vector<PackedSlice>> slices;  // of each output
};

Copy MakeCopy(const KernelTable& table, const Layer& layer,
              const std::vector<StoredMatrix>& matrices) {
  Copy copy;
  for (size_t o = 0; o < layer.rows.size(); ++o) {
    copy.slices.emplace_back();
    const int64_t leaf_columns = layer.columns / (layer.leaves + 1);
    int64_t first = 0;
    for (int leaf = 0; leaf < layer.leaves; ++leaf) {
      // As with nine heads over eight leaves, the first leaf takes what does not divide.
      const int64_t columns = layer.leaves == 1 ? layer.columns
                              : layer.columns % (layer.leaves * kGroupValues) == 0
                                  ? layer.columns / layer.leaves
                              : leaf == 0 ? layer.columns - leaf_columns * (layer.leaves - 1)
                                          : leaf_columns;
      const SliceShape shape{layer.format, layer.rows[o], columns, first};
      copy.packed.emplace_back(table.packed_bytes(shape));
      table.pack({.shape = shape,
                  .source = matrices[o].bytes.data(),
                  .source_row_bytes = matrices[o].row_bytes,
                  .packed = copy.packed.back().data()});
      copy.slices.back().push_back({shape, leaf, copy.packed.back().data()});
      first += columns;
    }
  }
  return copy;
}

// The time of one call that one call in ten reaches: neighbours disturb most calls on a busy
// machine.
template <typename Body>
double TypicalBestSeconds(size_t copies, const Body& body) {
  constexpr double kSecondsMax = 0.4;
  std::vector<double> seconds;
  const double start = NowSeconds();
  for (size_t i = 0; (NowSeconds() - start < kSecondsMax || i < 3) && i < 2000; ++i) {
    const double before = NowSeconds();
    body(i % copies);
    seconds.push_back(NowSeconds() - before);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 10];
}

void TimeLayer(const KernelTable& table, TestExecution& execution, const MachineLimits& limits,
               const Layer& layer, const std::vector<int64_t>& token_counts) {
  Random random(3);
  std::vector<StoredMatrix> matrices;
  double weights = 0;
  for (const int64_t rows : layer.rows) {
    matrices.push_back(
        RandomMatrix(random, layer.format, rows, layer.columns, WeightFill::kOrdinary));
    weights += static_cast<double>(rows * layer.columns);
  }
  std::vector<Copy> copies;
  int64_t bytes = 0;
  int64_t copy_bytes = 0;
  while (bytes < kColdBytes && copies.size() < 400) {
    copies.push_back(MakeCopy(table, layer, matrices));
    copy_bytes = 0;
    for (const GuardedBytes& packed : copies.back().packed) {
      copy_bytes += packed.bytes();
    }
    bytes += copy_bytes;
  }
  for (const int64_t tokens : token_counts) {
    std::vector<float> x(static_cast<size_t>(tokens * layer.columns));
    random.FillNormal(x.data(), tokens * layer.columns);
    const ActivationKind kind = ActivationKindOf(InfoOf(layer.format));
    GuardedBytes quantized(
        kind == ActivationKind::kInt8 ? table.quantized_bytes(tokens, layer.columns) : 0);
    GuardedBytes rounded(
        kind == ActivationKind::kBFloat16 ? table.rounded_bytes(tokens, layer.columns) : 0);
    if (kind == ActivationKind::kInt8) {
      table.quantize(execution.get(),
                     {x.data(), tokens, layer.columns, layer.columns, quantized.data()});
    } else if (kind == ActivationKind::kBFloat16) {
      table.round(execution.get(),
                  {x.data(), tokens, layer.columns, layer.columns, rounded.data()});
    }
    MatmulArgs args{.x = kind == ActivationKind::kFloat32 ? x.data() : nullptr,
                    .x_stride = layer.columns,
                    .quantized = kind == ActivationKind::kInt8 ? quantized.data() : nullptr,
                    .rounded = kind == ActivationKind::kBFloat16 ? rounded.data() : nullptr,
                    .tokens = tokens,
                    .columns = layer.columns,
                    .outputs = {},
                    .output_count = static_cast<int>(layer.rows.size())};
    std::vector<std::vector<float>> y;
    for (const int64_t rows : layer.rows) {
      y.emplace_back(static_cast<size_t>(tokens * rows));
    }
    const double seconds = TypicalBestSeconds(copies.size(), [&](size_t c) {
      for (size_t o = 0; o < layer.rows.size(); ++o) {
        args.outputs[o] = {copies[c].slices[o].data(), layer.leaves, layer.rows[o], y[o].data(),
                           layer.rows[o]};
      }
      table.matmul(execution.get(), args);
    });
    const double operations = 2 * weights * static_cast<double>(tokens) / seconds;
    const double bandwidth = static_cast<double>(copy_bytes) / seconds;
    const double peak = limits.OperationsPerSecond(kind);
    std::printf("  %-14s %-5s %4lld tokens %9.1f us %6.1f GB/s (%3.0f %%) %7.0f GOP/s (%3.0f %%)\n",
                layer.name, InfoOf(layer.format).name, static_cast<long long>(tokens),
                seconds * 1e6, bandwidth * 1e-9, 100 * bandwidth / limits.stream_bytes_per_second,
                operations * 1e-9, 100 * operations / peak);
    std::fflush(stdout);
  }
}

}  // namespace

void BenchmarkMatmul(const KernelTable& table, int threads, const MachineLimits& limits) {
  TestExecution execution(threads, 1 << 20);
  const std::vector<int64_t> kTokens = {1, 2, 4, 6, 8, 16, 64, 512};
  const Layer kLayers[] = {
      {"query_key_value", WeightFormat::kQ4_1, 576, {576, 192, 192}, 1},
      {"attention_out", WeightFormat::kQ4_1, 576, {576}, 8},
      {"gate_up", WeightFormat::kQ4_1, 576, {1536, 1536}, 1},
      {"down", WeightFormat::kQ4_1, 1536, {576}, 8},
      {"logits", WeightFormat::kQ8_0, 576, {49152}, 1},
  };
  for (const Layer& layer : kLayers) {
    TimeLayer(table, execution, limits, layer, kTokens);
  }
  for (const WeightFormatInfo& info : kWeightFormats) {
    TimeLayer(table, execution, limits, {"2048 x 2048", info.format, 2048, {2048}, 1},
              {1, 4, 8, 16, 32, 128});
  }
}

}  // namespace trireme::kernels::check
