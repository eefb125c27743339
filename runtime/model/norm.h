// The norms of a model, by its kind, and what is added to rows after a product.
#ifndef TRIREME_RUNTIME_MODEL_NORM_H_
#define TRIREME_RUNTIME_MODEL_NORM_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
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

// A row that the tensor group shares: each rank has some of its segments, of segment_columns each
// (the row's last may be shorter).
struct SharedRows {
  float* x = nullptr;           // [tokens, columns] of this rank; normed in place
  const float* gain = nullptr;  // [columns]
  int64_t tokens = 0;
  int64_t columns = 0;  // of this rank; may be 0
  int64_t segment_columns = 0;
  int64_t first_segment = 0;       // of this rank
  int64_t all_columns = 0;         // of all ranks
  std::byte* quantized = nullptr;  // or null
};

// RMS norm over whole rows: every rank brings the sums of squares of its own segments, and all add
// them in the order of the segments, so that every layout has the same bits. Errors: those of the
// communicator.
absl::Status NormShared(const Context& context, const spec::ModelSpec& model,
                        const SharedRows& rows);

// x = (x + bias) * scale over [tokens, columns]; nothing where that is x.
void AddBias(const Context& context, float* x, const float* bias, int64_t tokens, int64_t columns,
             double scale = 1);

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_NORM_H_
