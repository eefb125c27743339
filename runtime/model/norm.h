// The norms of a model, by its kind, and what is added to rows after a product.
#ifndef TRIREME_RUNTIME_MODEL_NORM_H_
#define TRIREME_RUNTIME_MODEL_NORM_H_

#include <cstddef>
#include <cstdint>

#include "runtime/model/context.h"
#include "runtime/spec/model_spec.h"

namespace trireme::model {

struct NormRows {
  float* x = nullptr;            // [tokens, columns]; delta is added to it first
  const float* delta = nullptr;  // or null
  const float* gain = nullptr;
  const float* bias = nullptr;  // of LayerNorm; or null
  int64_t tokens = 0;
  int64_t columns = 0;
  float* y = nullptr;
  std::byte* quantized = nullptr;  // or null
};

void Norm(const Context& context, const spec::ModelSpec& model, const NormRows& rows);

// x = (x + bias) * scale over [tokens, columns]; nothing where that is x.
void AddBias(const Context& context, float* x, const float* bias, int64_t tokens, int64_t columns,
             double scale = 1);

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_NORM_H_
