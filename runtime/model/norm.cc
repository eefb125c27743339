#include "runtime/model/norm.h"

#include "kernels/kernel_table.h"
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
