// Norm, activation, addition, rotation with the store into the cache, argmax: bit for bit against
// the reference table, over extents that are no whole number of lanes.
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/check_harness.h"

namespace trireme::kernels::check {
namespace {

void CheckRmsNorm(Checker& checker, int64_t tokens, int64_t columns, bool has_delta) {
  Random random(static_cast<uint64_t>(tokens * 10007 + columns));
  const int64_t count = tokens * columns;
  Guarded<float> x(count), expected_x(count), delta(count), gain(columns), y(count),
      expected_y(count);
  random.FillNormal(x.data(), count, 3.0F);
  random.FillNormal(delta.data(), count);
  random.FillNormal(gain.data(), columns);
  CopyTo(expected_x, x);
  const bool has_groups = columns % kGroupValues == 0 && checker.table.quantize != nullptr;
  GuardedBytes quantized(has_groups ? checker.table.quantized_bytes(tokens, columns) : 0);
  RmsNormArgs args{.x = expected_x.data(),
                   .delta = has_delta ? delta.data() : nullptr,
                   .gain = gain.data(),
                   .epsilon = 1e-5F,
                   .tokens = tokens,
                   .columns = columns,
                   .y = expected_y.data()};
  checker.reference.rms_norm(checker.reference_execution.get(), args);
  args.x = x.data();
  args.y = y.data();
  args.quantized = has_groups ? quantized.data() : nullptr;
  checker.table.rms_norm(checker.execution.get(), args);
  const std::string what =
      Describe(has_delta ? "rms_norm with delta" : "rms_norm", {tokens, columns});
  checker.ExpectSameBits(y.data(), expected_y.data(), count, what + " y");
  checker.ExpectSameBits(x.data(), expected_x.data(), count, what + " x");
  checker.Expect(x.GuardsAreIntact() && y.GuardsAreIntact(), what + " guards");
  if (has_groups) {
    ExpectQuantized(checker, y.data(), tokens, columns, quantized, what);
  }
}

void CheckGatedActivation(Checker& checker, int64_t tokens, int64_t columns) {
  Random random(static_cast<uint64_t>(tokens * 20011 + columns));
  const int64_t count = tokens * columns;
  Guarded<float> gate(count), up(count), y(count), expected_y(count);
  random.FillNormal(gate.data(), count, 20.0F);
  random.FillNormal(up.data(), count);
  const float special[] = {0.0F,  -0.0F,  87.0F,     -87.0F,     88.73F, -88.73F,
                           1e30F, -1e30F, kInfinity, -kInfinity, kNan,   1e-40F};
  for (int64_t i = 0; i < count && i < 12; ++i) {
    gate[count - 1 - i] = special[i];
  }
  const bool has_groups = columns % kGroupValues == 0 && checker.table.quantize != nullptr;
  GuardedBytes quantized(has_groups ? checker.table.quantized_bytes(tokens, columns) : 0);
  GatedActivationArgs args{.gate = gate.data(),
                           .up = up.data(),
                           .tokens = tokens,
                           .columns = columns,
                           .y = expected_y.data()};
  checker.reference.gated_activation(checker.reference_execution.get(), args);
  args.y = gate.data();  // in place
  args.quantized = has_groups ? quantized.data() : nullptr;
  checker.table.gated_activation(checker.execution.get(), args);
  const std::string what = Describe("gated_activation", {tokens, columns});
  checker.ExpectSameBits(gate.data(), expected_y.data(), count, what);
  checker.Expect(gate.GuardsAreIntact(), what + " guards");
  if (has_groups) {
    ExpectQuantized(checker, gate.data(), tokens, columns, quantized, what);
  }
}

void CheckAdd(Checker& checker, int64_t count) {
  Random random(static_cast<uint64_t>(count));
  Guarded<float> x(count), expected(count), delta(count);
  random.FillNormal(x.data(), count);
  random.FillNormal(delta.data(), count);
  CopyTo(expected, x);
  checker.reference.add(checker.reference_execution.get(),
                        {.x = expected.data(), .delta = delta.data(), .count = count});
  checker.table.add(checker.execution.get(),
                    {.x = x.data(), .delta = delta.data(), .count = count});
  const std::string what = Describe("add", {count});
  checker.ExpectSameBits(x.data(), expected.data(), count, what);
  checker.Expect(x.GuardsAreIntact(), what + " guards");
}

struct RopeCase {
  RopeStyle style;
  KeyValueFormat format;
  int64_t tokens, query_heads, key_value_heads, head_dim, rotated_dim;
};

void CheckRopeAndStore(Checker& checker, const RopeCase& shape) {
  Random random(static_cast<uint64_t>(shape.head_dim * 31 + shape.tokens));
  const int64_t query_count = shape.tokens * shape.query_heads * shape.head_dim;
  const int64_t key_count = shape.tokens * shape.key_value_heads * shape.head_dim;
  const int64_t angle_count = shape.tokens * shape.rotated_dim / 2;
  Guarded<float> query(query_count), expected_query(query_count), key(key_count),
      expected_key(key_count), value(key_count), expected_value(key_count), cosines(angle_count),
      sines(angle_count);
  random.FillNormal(query.data(), query_count);
  random.FillNormal(key.data(), key_count);
  random.FillNormal(value.data(), key_count, 100.0F);  // some beyond half's range once squared
  for (int64_t i = 0; i < angle_count; ++i) {
    cosines[i] = random.Uniform(-1, 1);
    sines[i] = random.Uniform(-1, 1);
  }
  value[0] = 1e6F;   // infinity in half precision
  value[1] = 1e-7F;  // subnormal
  CopyTo(expected_query, query);
  CopyTo(expected_key, key);
  CopyTo(expected_value, value);
  KeyValueCache cache{
      .format = shape.format, .key_value_heads = shape.key_value_heads, .head_dim = shape.head_dim};
  const int64_t blocks = shape.tokens / kBlockTokens + 3;
  GuardedBytes data(blocks * cache.BlockBytes()), expected_data(blocks * cache.BlockBytes());
  std::vector<int64_t> slots(static_cast<size_t>(shape.tokens));
  for (int64_t i = 0; i < shape.tokens; ++i) {  // from the middle of a block, blocks in odd order
    const int64_t position = i + 5;
    slots[static_cast<size_t>(i)] =
        (blocks - 1 - position / kBlockTokens) * kBlockTokens + position % kBlockTokens;
  }
  RopeAndStoreArgs args{.style = shape.style,
                        .rotated_dim = shape.rotated_dim,
                        .cosines = cosines.data(),
                        .sines = sines.data(),
                        .tokens = shape.tokens,
                        .query = expected_query.data(),
                        .query_heads = shape.query_heads,
                        .key = expected_key.data(),
                        .value = expected_value.data(),
                        .cache = cache,
                        .slots = slots.data()};
  args.cache.data = expected_data.data();
  checker.reference.rope_and_store(checker.reference_execution.get(), args);
  args.cache.data = data.data();
  args.query = query.data();
  args.key = key.data();
  args.value = value.data();
  checker.table.rope_and_store(checker.execution.get(), args);
  const std::string what =
      Describe("rope_and_store",
               {static_cast<int64_t>(shape.style), static_cast<int64_t>(shape.format), shape.tokens,
                shape.query_heads, shape.key_value_heads, shape.head_dim, shape.rotated_dim});
  checker.ExpectSameBits(query.data(), expected_query.data(), query_count, what + " query");
  checker.ExpectSameBits(key.data(), expected_key.data(), key_count, what + " key");
  checker.ExpectSameBits(value.data(), expected_value.data(), key_count, what + " value");
  checker.ExpectSameBytes(data.data(), expected_data.data(), data.bytes(), what + " cache");
  checker.Expect(query.GuardsAreIntact() && key.GuardsAreIntact() && value.GuardsAreIntact() &&
                     data.GuardsAreIntact(),
                 what + " guards");
}

void CheckArgmax(Checker& checker, int64_t rows, int64_t columns, int variant) {
  Random random(static_cast<uint64_t>(rows * 7 + columns + variant));
  Guarded<float> x(rows * columns), maximum(rows), expected_maximum(rows);
  Guarded<int32_t> index(rows), expected_index(rows);
  for (int64_t i = 0; i < x.count(); ++i) {
    switch (variant) {
      case 0:
        x[i] = random.Normal();
        break;
      case 1:
        x[i] = static_cast<float>(random.Below(3));
        break;  // many equal
      case 2:
        x[i] = random.Below(2) == 0 ? 0.0F : -0.0F;
        break;
      case 3:
        x[i] = random.Below(4) == 0 ? -1.0F - random.Uniform(0, 1) : kNan;
        break;
      case 4:
        x[i] = kNan;
        break;
      default:
        x[i] = -kInfinity;
        break;
    }
  }
  ArgmaxArgs args{.x = x.data(),
                  .rows = rows,
                  .columns = columns,
                  .index = expected_index.data(),
                  .maximum = expected_maximum.data()};
  checker.reference.argmax(checker.reference_execution.get(), args);
  args.index = index.data();
  args.maximum = maximum.data();
  checker.table.argmax(checker.execution.get(), args);
  const std::string what = Describe("argmax", {rows, columns, variant});
  checker.ExpectSameBytes(index.data(), expected_index.data(), rows * 4, what + " index");
  checker.ExpectSameBits(maximum.data(), expected_maximum.data(), rows, what + " maximum");
  checker.Expect(index.GuardsAreIntact() && maximum.GuardsAreIntact(), what + " guards");
}

}  // namespace

void CheckRows(Checker& checker) {
  for (const int64_t columns : {1, 7, 16, 31, 32, 96, 576, 1000, 4096}) {
    for (const int64_t tokens : {1, 2, 17}) {
      CheckRmsNorm(checker, tokens, columns, /*has_delta=*/false);
      CheckRmsNorm(checker, tokens, columns, /*has_delta=*/true);
      CheckGatedActivation(checker, tokens, columns);
    }
  }
  for (const int64_t count : {1, 15, 16, 17, 4096, 100003}) {
    CheckAdd(checker, count);
  }
  for (const RopeStyle style : {RopeStyle::kNone, RopeStyle::kInterleaved, RopeStyle::kHalfSplit}) {
    for (const KeyValueFormat format : kKeyValueFormats) {
      CheckRopeAndStore(checker, {style, format, 1, 9, 3, 64, 64});
      CheckRopeAndStore(checker, {style, format, 70, 9, 3, 64, 64});
      CheckRopeAndStore(checker, {style, format, 37, 5, 2, 8, 8});
      CheckRopeAndStore(checker, {style, format, 40, 3, 1, 80, 20});
      CheckRopeAndStore(checker, {style, format, 33, 2, 2, 96, 96});
      CheckRopeAndStore(checker, {style, format, 19, 1, 1, 24, 2});
    }
  }
  for (int variant = 0; variant < 6; ++variant) {
    for (const int64_t columns : {1, 16, 33, 1000, 49152, 100001}) {
      for (const int64_t rows : {1, 5}) {
        CheckArgmax(checker, rows, columns, variant);
      }
    }
  }
}

}  // namespace trireme::kernels::check
