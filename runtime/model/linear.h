// Products of activations with weight matrices: chooses between quantised, rounded and float
// activations, calls the kernel table.
#ifndef TRIREME_RUNTIME_MODEL_LINEAR_H_
#define TRIREME_RUNTIME_MODEL_LINEAR_H_

#include <cstdint>
#include <initializer_list>

#include "absl/types/span.h"
#include "kernels/formats/weight_format.h"
#include "runtime/model/context.h"
#include "runtime/weights/shard.h"

namespace trireme::model {

// What the matrix multiplies. The same on every layout: it depends on the whole matrix.
kernels::ActivationKind ActivationsOf(const Context& context, const weights::PackedMatrix& matrix);

// The buffer to quantise an input into when one of the matrices takes it as int8, else null.
std::byte* QuantizedInput(const Context& context,
                          std::initializer_list<const weights::PackedMatrix*> matrices);

struct Product {
  const weights::PackedMatrix* matrix = nullptr;
  float* y = nullptr;    // [tokens, y_stride]
  int64_t y_stride = 0;  // 0: matrix->rows
};

// y = matrix * x for each product, all with the same input: x as float32 [tokens, columns] and, if
// any matrix wants it, already quantised in the activations' `quantized`; rounded to bfloat16 here.
// Rows of x lie x_stride apart (0: columns). Matrices without columns on this rank give -0, which
// changes no sum.
void Multiply(const Context& context, const float* x, int64_t tokens, int64_t columns,
              absl::Span<const Product> products, int64_t x_stride = 0);

// Quantises x [tokens, columns] into the activations' `quantized` if one of the matrices wants it.
void QuantizeFor(const Context& context,
                 std::initializer_list<const weights::PackedMatrix*> matrices, const float* x,
                 int64_t tokens, int64_t columns, int64_t x_stride = 0);

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_LINEAR_H_
