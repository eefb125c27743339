#include "runtime/model/norm.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/kernel_table.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/context.h"
#include "runtime/spec/model_spec.h"

namespace trireme::model {

void Norm(const Context& context, const spec::ModelSpec& model, const NormRows& rows) {
  const auto epsilon = static_cast<float>(model.norm_epsilon);
  if (model.norm == spec::NormKind::kRms) {
    context.table->rms_norm(context.execution, {.x = rows.x,
                                                .delta = rows.delta,
                                                .gain = rows.gain,
                                                .epsilon = epsilon,
                                                .tokens = rows.tokens,
                                                .columns = rows.columns,
                                                .y = rows.y,
                                                .quantized = rows.quantized});
    return;
  }
  context.table->layer_norm(context.execution, {.x = rows.x,
                                                .delta = rows.delta,
                                                .gain = rows.gain,
                                                .bias = rows.bias,
                                                .epsilon = epsilon,
                                                .tokens = rows.tokens,
                                                .columns = rows.columns,
                                                .y = rows.y,
                                                .quantized = rows.quantized});
}

absl::Status NormShared(const Context& context, const spec::ModelSpec& model,
                        const SharedRows& rows) {
  const Activations& a = *context.activations;
  const int64_t segments = (rows.all_columns + rows.segment_columns - 1) / rows.segment_columns;
  const absl::Span<float> sums(a.square_sums, static_cast<size_t>(rows.tokens * segments));
  std::fill(sums.begin(), sums.end(), -0.0F);  // which changes no sum
  if (rows.columns > 0) {
    context.table->square_sums(context.execution, {.x = rows.x,
                                                   .tokens = rows.tokens,
                                                   .columns = rows.columns,
                                                   .segment_columns = rows.segment_columns,
                                                   .sums = a.square_sums + rows.first_segment,
                                                   .sums_stride = segments});
  }
  RETURN_IF_ERROR(context.tensor_group->AllReduceSum(sums));
  for (int64_t token = 0; token < rows.tokens; ++token) {
    float sum = 0;
    for (int64_t segment = 0; segment < segments; ++segment) {
      sum += sums[token * segments + segment];
    }
    a.roots[token] = std::sqrt(sum / static_cast<float>(rows.all_columns) +
                               static_cast<float>(model.norm_epsilon));
  }
  if (rows.columns > 0) {
    context.table->scale_rows(context.execution, {.x = rows.x,
                                                  .roots = a.roots,
                                                  .gain = rows.gain,
                                                  .tokens = rows.tokens,
                                                  .columns = rows.columns,
                                                  .y = rows.x,
                                                  .quantized = rows.quantized});
  }
  return absl::OkStatus();
}

void AddBias(const Context& context, float* x, const float* bias, int64_t tokens, int64_t columns,
             double scale) {
  if (bias == nullptr && scale == 1) {
    return;
  }
  context.table->adjust(context.execution, {.x = x,
                                            .bias = bias,
                                            .scale = static_cast<float>(scale),
                                            .tokens = tokens,
                                            .columns = columns});
}

}  // namespace trireme::model
