// LayerNorm, bias and scale, shared norms, sums of rows and every activation: bit for bit against
// the reference table, over extents that are no whole number of lanes.
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/check_harness.h"

namespace trireme::kernels::check {
namespace {

void CheckLayerNorm(Checker& checker, int64_t tokens, int64_t columns, bool has_delta,
                    bool has_bias) {
  Random random(static_cast<uint64_t>(tokens * 10009 + columns));
  const int64_t count = tokens * columns;
  Guarded<float> x(count), expected_x(count), delta(count), gain(columns), bias(columns), y(count),
      expected_y(count);
  random.FillNormal(x.data(), count, 3.0F);
  random.FillNormal(delta.data(), count);
  random.FillNormal(gain.data(), columns);
  random.FillNormal(bias.data(), columns);
  CopyTo(expected_x, x);
  const bool has_groups = columns % kGroupValues == 0 && checker.table.quantize != nullptr;
  GuardedBytes quantized(has_groups ? checker.table.quantized_bytes(tokens, columns) : 0);
  LayerNormArgs args{.x = expected_x.data(),
                     .delta = has_delta ? delta.data() : nullptr,
                     .gain = gain.data(),
                     .bias = has_bias ? bias.data() : nullptr,
                     .epsilon = 1e-5F,
                     .tokens = tokens,
                     .columns = columns,
                     .y = expected_y.data()};
  checker.reference.layer_norm(checker.reference_execution.get(), args);
  args.x = x.data();
  args.y = y.data();
  args.quantized = has_groups ? quantized.data() : nullptr;
  checker.table.layer_norm(checker.execution.get(), args);
  const std::string what = Describe("layer_norm", {tokens, columns, has_delta, has_bias});
  checker.ExpectSameBits(y.data(), expected_y.data(), count, what + " y");
  checker.ExpectSameBits(x.data(), expected_x.data(), count, what + " x");
  checker.Expect(x.GuardsAreIntact() && y.GuardsAreIntact(), what + " guards");
  if (has_groups) {
    ExpectQuantized(checker, y.data(), tokens, columns, quantized, what);
  }
}

void CheckActivation(Checker& checker, Activation activation, bool has_up, int64_t tokens,
                     int64_t columns) {
  Random random(static_cast<uint64_t>(tokens * 20021 + columns));
  const int64_t count = tokens * columns;
  Guarded<float> gate(count), up(count), expected_y(count);
  random.FillNormal(gate.data(), count, 8.0F);
  random.FillNormal(up.data(), count, 8.0F);
  const float special[] = {0.0F, -0.0F, 87.0F, -87.0F, 7.0F, -7.0F, 1e30F, -1e30F, kNan, 1e-40F};
  for (int64_t i = 0; i < count && i < 10; ++i) {
    gate[count - 1 - i] = special[i];
    up[i] = special[i];
  }
  GatedActivationArgs args{.activation = activation,
                           .gate = gate.data(),
                           .up = has_up ? up.data() : nullptr,
                           .tokens = tokens,
                           .columns = columns,
                           .y = expected_y.data()};
  checker.reference.gated_activation(checker.reference_execution.get(), args);
  args.y = gate.data();  // in place
  checker.table.gated_activation(checker.execution.get(), args);
  const std::string what =
      Describe("activation", {static_cast<int64_t>(activation), has_up, tokens, columns});
  checker.ExpectSameBits(gate.data(), expected_y.data(), count, what);
  checker.Expect(gate.GuardsAreIntact(), what + " guards");
}

void CheckAdjust(Checker& checker, int64_t tokens, int64_t columns, bool has_bias, float soft_cap) {
  Random random(static_cast<uint64_t>(tokens * 30011 + columns));
  const int64_t count = tokens * columns;
  Guarded<float> x(count), expected(count), bias(columns);
  random.FillNormal(x.data(), count, 30.0F);
  random.FillNormal(bias.data(), columns);
  x[0] = kInfinity;
  x[count - 1] = -kInfinity;
  CopyTo(expected, x);
  AdjustArgs args{.x = expected.data(),
                  .bias = has_bias ? bias.data() : nullptr,
                  .scale = 0.7F,
                  .soft_cap = soft_cap,
                  .tokens = tokens,
                  .columns = columns};
  checker.reference.adjust(checker.reference_execution.get(), args);
  args.x = x.data();
  checker.table.adjust(checker.execution.get(), args);
  const std::string what = Describe("adjust", {tokens, columns, has_bias, soft_cap != 0});
  checker.ExpectSameBits(x.data(), expected.data(), count, what);
  checker.Expect(x.GuardsAreIntact(), what + " guards");
}

void CheckSquareSums(Checker& checker, int64_t tokens, int64_t columns, int64_t segment_columns) {
  Random random(static_cast<uint64_t>(tokens * 40009 + columns));
  const int64_t segments = (columns + segment_columns - 1) / segment_columns;
  const int64_t stride = segments + 3;
  Guarded<float> x(tokens * columns), sums(tokens * stride), expected(tokens * stride);
  random.FillNormal(x.data(), x.count());
  for (int64_t i = 0; i < sums.count(); ++i) {
    sums[i] = expected[i] = -1.0F;  // what lies between rows stays
  }
  SquareSumsArgs args{.x = x.data(),
                      .tokens = tokens,
                      .columns = columns,
                      .segment_columns = segment_columns,
                      .sums = expected.data(),
                      .sums_stride = stride};
  checker.reference.square_sums(checker.reference_execution.get(), args);
  args.sums = sums.data();
  checker.table.square_sums(checker.execution.get(), args);
  const std::string what = Describe("square_sums", {tokens, columns, segment_columns});
  checker.ExpectSameBits(sums.data(), expected.data(), sums.count(), what);
  checker.Expect(sums.GuardsAreIntact(), what + " guards");
}

void CheckScaleRows(Checker& checker, int64_t tokens, int64_t columns) {
  Random random(static_cast<uint64_t>(tokens * 50021 + columns));
  const int64_t count = tokens * columns;
  Guarded<float> x(count), roots(tokens), gain(columns), expected(count);
  random.FillNormal(x.data(), count);
  random.FillNormal(gain.data(), columns);
  for (int64_t token = 0; token < tokens; ++token) {
    roots[token] = random.Uniform(0.5F, 2);
  }
  const bool has_groups = columns % kGroupValues == 0 && checker.table.quantize != nullptr;
  GuardedBytes quantized(has_groups ? checker.table.quantized_bytes(tokens, columns) : 0);
  ScaleRowsArgs args{.x = x.data(),
                     .roots = roots.data(),
                     .gain = gain.data(),
                     .tokens = tokens,
                     .columns = columns,
                     .y = expected.data()};
  checker.reference.scale_rows(checker.reference_execution.get(), args);
  args.y = x.data();  // in place
  args.quantized = has_groups ? quantized.data() : nullptr;
  checker.table.scale_rows(checker.execution.get(), args);
  const std::string what = Describe("scale_rows", {tokens, columns});
  checker.ExpectSameBits(x.data(), expected.data(), count, what);
  checker.Expect(x.GuardsAreIntact(), what + " guards");
  if (has_groups) {
    ExpectQuantized(checker, x.data(), tokens, columns, quantized, what);
  }
}

void CheckCombineRows(Checker& checker, int64_t tokens, int64_t columns, int64_t terms) {
  Random random(static_cast<uint64_t>(tokens * 60013 + columns + terms));
  const int64_t source_rows = tokens * terms + 1;
  Guarded<float> x(source_rows * columns), weights(tokens * terms), y(tokens * columns),
      expected(tokens * columns);
  Guarded<int32_t> rows(tokens * terms);
  random.FillNormal(x.data(), x.count());
  random.FillNormal(weights.data(), weights.count());
  for (int64_t i = 0; i < rows.count(); ++i) {
    rows[i] = static_cast<int32_t>(random.Below(static_cast<uint32_t>(source_rows)));
  }
  CombineRowsArgs args{.x = x.data(),
                       .rows = rows.data(),
                       .weights = weights.data(),
                       .terms = terms,
                       .tokens = tokens,
                       .columns = columns,
                       .y = expected.data()};
  checker.reference.combine_rows(checker.reference_execution.get(), args);
  args.y = y.data();
  checker.table.combine_rows(checker.execution.get(), args);
  const std::string what = Describe("combine_rows", {tokens, columns, terms});
  checker.ExpectSameBits(y.data(), expected.data(), y.count(), what);
  checker.Expect(y.GuardsAreIntact(), what + " guards");
}

}  // namespace

void CheckSharedRows(Checker& checker) {
  for (const int64_t columns : {1, 7, 16, 33, 96, 576, 1000}) {
    for (const int64_t tokens : {1, 2, 17}) {
      for (const bool has_bias : {false, true}) {
        CheckLayerNorm(checker, tokens, columns, /*has_delta=*/!has_bias, has_bias);
        CheckAdjust(checker, tokens, columns, has_bias, has_bias ? 0.0F : 30.0F);
        CheckAdjust(checker, tokens, columns, has_bias, has_bias ? 5.0F : 0.0F);
      }
      for (const Activation activation :
           {Activation::kSilu, Activation::kGeluTanh, Activation::kRelu2}) {
        CheckActivation(checker, activation, /*has_up=*/true, tokens, columns);
        CheckActivation(checker, activation, /*has_up=*/false, tokens, columns);
      }
      CheckActivation(checker, Activation::kClampedSwish, /*has_up=*/true, tokens, columns);
      CheckSquareSums(checker, tokens, columns, 8);
      CheckSquareSums(checker, tokens, columns, 32);
      CheckScaleRows(checker, tokens, columns);
      CheckCombineRows(checker, tokens, columns, 1);
      CheckCombineRows(checker, tokens, columns, 5);
    }
  }
}

}  // namespace trireme::kernels::check
