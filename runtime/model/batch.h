// What one step gives to the forward pass: the rows of all sequences, side by side. Views of the
// plan and of tables that the caller prepared; valid during the call.
#ifndef TRIREME_RUNTIME_MODEL_BATCH_H_
#define TRIREME_RUNTIME_MODEL_BATCH_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/kernel_table.h"

namespace trireme::model {

struct Batch {
  absl::Span<const int32_t> token_ids;                     // [tokens]
  absl::Span<const int32_t> positions;                     // [tokens]
  absl::Span<const int64_t> slots;                         // [tokens]
  absl::Span<const kernels::AttentionSequence> sequences;  // cover the rows in order
  absl::Span<const int32_t> logit_rows;                    // rows whose logits are wanted, rising

  int64_t tokens() const { return static_cast<int64_t>(token_ids.size()); }
};

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_BATCH_H_
