// Times of attention and of the row ops in the shapes of SmolLM2-135M (9 query heads, 3 key/value
// heads of 64, width 576) and of an 8B model (32, 8 of 128, width 4096), with their shares of the
// machine's limits. Attention counts 4 * head_dim operations for each query head and visible key.
#include <cstdio>
#include <string>
#include <vector>

#include "tests/kernels/check_harness.h"

namespace trireme::kernels::check {
namespace {

struct ModelShape {
  const char* name;
  int64_t query_heads, key_value_heads, head_dim, model_dim, hidden_dim;
};
constexpr ModelShape kModels[] = {{"135M", 9, 3, 64, 576, 1536}, {"8B", 32, 8, 128, 4096, 14336}};
constexpr int kRepeats = 7;

// `sequences` sequences of `rows` new rows each, after `context` earlier keys.
void TimeAttention(const KernelTable& table, int threads, const MachineLimits& limits,
                   const ModelShape& model, int64_t sequences, int64_t rows, int64_t context) {
  KeyValueCache cache{.format = KeyValueFormat::kF16,
                      .key_value_heads = model.key_value_heads,
                      .head_dim = model.head_dim};
  const int64_t blocks_each = (context + rows + kBlockTokens - 1) / kBlockTokens;
  std::vector<std::byte> data(static_cast<size_t>(sequences * blocks_each * cache.BlockBytes()),
                              std::byte{0x2A});
  cache.data = data.data();
  std::vector<int32_t> block_table(static_cast<size_t>(sequences * blocks_each));
  for (size_t i = 0; i < block_table.size(); ++i) {
    block_table[i] = static_cast<int32_t>(i);
  }
  std::vector<AttentionSequence> list;
  for (int64_t i = 0; i < sequences; ++i) {
    list.push_back({.first_row = i * rows,
                    .rows = rows,
                    .first_position = context,
                    .block_table = block_table.data() + i * blocks_each});
  }
  std::vector<int32_t> head_of;
  for (int64_t i = 0; i < model.query_heads; ++i) {
    head_of.push_back(static_cast<int32_t>(i * model.key_value_heads / model.query_heads));
  }
  std::vector<float> query(
      static_cast<size_t>(sequences * rows * model.query_heads * model.head_dim));
  std::vector<float> output(query.size());
  Random(1).FillNormal(query.data(), static_cast<int64_t>(query.size()));
  TestExecution execution(threads, table.shared_scratch_bytes(sequences * rows, model.query_heads,
                                                              model.head_dim, context + rows));
  const AttentionArgs args{.sequences = list.data(),
                           .sequence_count = sequences,
                           .query = query.data(),
                           .query_heads = model.query_heads,
                           .key_value_head_of = head_of.data(),
                           .scale = 0.125F,
                           .cache = cache,
                           .output = output.data()};
  const double seconds = FastestSeconds([&] { table.attention(execution.get(), args); }, kRepeats);
  const double pairs = static_cast<double>(sequences) * static_cast<double>(rows) *
                       (static_cast<double>(context) + static_cast<double>(rows + 1) / 2);
  const double operations = pairs * static_cast<double>(model.query_heads * model.head_dim) * 4;
  const double bytes = static_cast<double>(data.size());
  std::printf(
      "%s %d threads attention %-4s %3lld x %4lld rows after %5lld: %9.1f us %7.1f GFLOP/s "
      "(%4.1f %% of peak) %6.1f GB/s (%4.1f %% of stream)\n",
      table.name, threads, model.name, static_cast<long long>(sequences),
      static_cast<long long>(rows), static_cast<long long>(context), seconds * 1e6,
      operations / seconds * 1e-9, 100 * operations / seconds / limits.float_operations_per_second,
      bytes / seconds * 1e-9, 100 * bytes / seconds / limits.stream_bytes_per_second);
}

void TimeRows(const KernelTable& table, int threads, const ModelShape& model, int64_t tokens) {
  TestExecution execution(threads, 64);
  const int64_t width = model.hidden_dim;
  std::vector<float> x(static_cast<size_t>(tokens * width)), y(x.size()), delta(x.size());
  std::vector<float> gain(static_cast<size_t>(width), 1.0F);
  Random random(2);
  random.FillNormal(x.data(), static_cast<int64_t>(x.size()));
  GuardedBytes quantized(table.quantized_bytes(tokens, width));
  const RmsNormArgs norm{.x = x.data(),
                         .delta = delta.data(),
                         .gain = gain.data(),
                         .epsilon = 1e-5F,
                         .tokens = tokens,
                         .columns = model.model_dim,
                         .y = y.data(),
                         .quantized = quantized.data()};
  const GatedActivationArgs activation{.gate = x.data(),
                                       .up = delta.data(),
                                       .tokens = tokens,
                                       .columns = width,
                                       .y = y.data(),
                                       .quantized = quantized.data()};
  const double norm_seconds =
      FastestSeconds([&] { table.rms_norm(execution.get(), norm); }, 10 * kRepeats);
  const double activation_seconds =
      FastestSeconds([&] { table.gated_activation(execution.get(), activation); }, 10 * kRepeats);
  std::printf(
      "%s %d threads rows %-4s %4lld tokens: rms_norm and quantise %8.2f us, "
      "gated_activation and quantise %8.2f us\n",
      table.name, threads, model.name, static_cast<long long>(tokens), norm_seconds * 1e6,
      activation_seconds * 1e6);
}

void TimeArgmax(const KernelTable& table, int threads, int64_t columns) {
  TestExecution execution(threads, 64);
  std::vector<float> x(static_cast<size_t>(columns));
  Random(3).FillNormal(x.data(), columns);
  int32_t index = 0;
  float maximum = 0;
  const ArgmaxArgs args{
      .x = x.data(), .rows = 1, .columns = columns, .index = &index, .maximum = &maximum};
  const double seconds =
      FastestSeconds([&] { table.argmax(execution.get(), args); }, 10 * kRepeats);
  std::printf("%s %d threads argmax %lld: %8.2f us\n", table.name, threads,
              static_cast<long long>(columns), seconds * 1e6);
}

}  // namespace

void BenchmarkRows(const KernelTable& table, int threads, const MachineLimits& /*limits*/) {
  for (const ModelShape& model : kModels) {
    TimeRows(table, threads, model, 1);
    TimeRows(table, threads, model, 512);
  }
  TimeArgmax(table, threads, 49152);
}

void BenchmarkAttention(const KernelTable& table, int threads, const MachineLimits& limits) {
  for (const ModelShape& model : kModels) {
    TimeAttention(table, threads, limits, model, 1, 512, 0);
    TimeAttention(table, threads, limits, model, 1, 512, 1536);
    TimeAttention(table, threads, limits, model, 1, 1, 300);
    TimeAttention(table, threads, limits, model, 1, 1, 8191);
    TimeAttention(table, threads, limits, model, 16, 1, 1000);
    TimeAttention(table, threads, limits, model, 1, 8, 1000);
  }
}

}  // namespace trireme::kernels::check
