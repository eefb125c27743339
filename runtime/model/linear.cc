#include "runtime/model/linear.h"

#include <initializer_list>

#include "absl/types/span.h"
#include "kernels/kernel_table.h"
#include "runtime/base/check.h"
#include "runtime/model/context.h"
#include "runtime/weights/shard.h"

namespace trireme::model {

using kernels::ActivationKind;

ActivationKind ActivationsOf(const Context& context, const weights::PackedMatrix& matrix) {
  return context.mode == ActivationMode::kAuto && !matrix.slices.empty() ? matrix.activations
                                                                         : ActivationKind::kFloat32;
}

std::byte* QuantizedInput(const Context& context,
                          std::initializer_list<const weights::PackedMatrix*> matrices) {
  for (const weights::PackedMatrix* matrix : matrices) {
    if (ActivationsOf(context, *matrix) == ActivationKind::kInt8) {
      return context.activations->quantized;
    }
  }
  return nullptr;
}

void QuantizeFor(const Context& context,
                 std::initializer_list<const weights::PackedMatrix*> matrices, const float* x,
                 int64_t tokens, int64_t columns, int64_t x_stride) {
  if (std::byte* const quantized = QuantizedInput(context, matrices)) {
    context.table->quantize(context.execution, {.x = x,
                                                .tokens = tokens,
                                                .columns = columns,
                                                .x_stride = x_stride == 0 ? columns : x_stride,
                                                .quantized = quantized});
  }
}

void Multiply(const Context& context, const float* x, int64_t tokens, int64_t columns,
              absl::Span<const Product> products, int64_t x_stride) {
  CHECK_LE(static_cast<int>(products.size()), kernels::kMatmulOutputsMax);
  const int64_t stride = x_stride == 0 ? columns : x_stride;
  // One call for the products on each path: all of a call are one parallel region.
  for (const ActivationKind kind :
       {ActivationKind::kInt8, ActivationKind::kBFloat16, ActivationKind::kFloat32}) {
    kernels::MatmulArgs args{.x_stride = stride, .tokens = tokens, .columns = columns};
    switch (kind) {
      case ActivationKind::kInt8:
        args.quantized = context.activations->quantized;
        break;
      case ActivationKind::kBFloat16:
        args.rounded = context.activations->rounded;
        break;
      case ActivationKind::kFloat32:
        args.x = x;
        break;
    }
    for (const Product& product : products) {
      const weights::PackedMatrix& matrix = *product.matrix;
      if (ActivationsOf(context, matrix) != kind || matrix.rows == 0) {
        continue;
      }
      args.outputs[args.output_count++] = {
          .slices = matrix.slices.data(),
          .slice_count = static_cast<int>(matrix.slices.size()),
          .rows = matrix.rows,
          .y = product.y,
          .y_stride = product.y_stride == 0 ? matrix.rows : product.y_stride};
    }
    if (args.output_count > 0 && kind == ActivationKind::kBFloat16) {
      context.table->round(context.execution, {.x = x,
                                               .tokens = tokens,
                                               .columns = columns,
                                               .x_stride = stride,
                                               .rounded = context.activations->rounded});
    }
    if (args.output_count > 0) {
      context.table->matmul(context.execution, args);
    }
  }
}

}  // namespace trireme::model
