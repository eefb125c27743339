// The arrays of one step on one rank, cut once at start for the largest step: nothing is allocated
// later.
#ifndef TRIREME_RUNTIME_MODEL_ACTIVATIONS_H_
#define TRIREME_RUNTIME_MODEL_ACTIVATIONS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/kernel_table.h"
#include "runtime/device/buffer.h"
#include "runtime/device/workspace.h"
#include "runtime/spec/model_spec.h"
#include "topology/partition.h"

namespace trireme::model {

struct ActivationLimits {
  int64_t tokens = 0;      // of one step
  int64_t logit_rows = 0;  // of one step
  int64_t context = 0;     // positions of one sequence
  int threads = 1;
};

class Activations {
 public:
  // Exact bytes, before anything is taken.
  static int64_t Bytes(const spec::ModelSpec& model, const topology::RankPart& part,
                       const kernels::KernelTable& table, const ActivationLimits& limits);

  static absl::StatusOr<Activations> Create(const spec::ModelSpec& model,
                                            const topology::RankPart& part,
                                            const kernels::KernelTable& table,
                                            const ActivationLimits& limits);

  float* residual = nullptr;  // [tokens, model_dim]: the stream that layers add to
  float* delta = nullptr;     // [tokens, model_dim]: what the last sublayer adds, not added yet
  float* normed = nullptr;    // [tokens, model_dim]
  int32_t* faults = nullptr;  // [tokens]: row_faults.h
  std::byte* quantized = nullptr;  // the quantised input of the next product
  std::byte* rounded = nullptr;    // the bfloat16 input of the product at hand
  float* query = nullptr;          // [tokens, query_heads, head_dim] of this rank
  float* key = nullptr;            // [tokens, key_value_heads, head_dim]
  float* value = nullptr;          // [tokens, key_value_heads, head_dim]
  float* attended = nullptr;       // [tokens, query_heads, head_dim]
  float* gate = nullptr;           // [tokens, hidden] of this rank, the widest of all layers
  float* up = nullptr;             // [tokens, hidden]

  // Of models that have the part; else empty.
  float* parallel_delta = nullptr;   // [tokens, model_dim]: a feed-forward beside attention
  float* square_sums = nullptr;      // [tokens, segments of a row] of all ranks
  float* roots = nullptr;            // [tokens]
  float* latent_query = nullptr;     // [tokens, query_heads, unrotated | rotated], then outputs
  float* low_rank_query = nullptr;   // [tokens, query_rank]
  float* latent = nullptr;           // [tokens, latent | rotated]
  float* router = nullptr;           // [tokens, experts]
  float* route_scratch = nullptr;    // [experts + groups]
  int32_t* chosen = nullptr;         // [tokens, used experts]
  float* expert_weights = nullptr;   // [tokens, used experts and the shared one]
  int32_t* row_of_term = nullptr;    // the same extents: rows of expert_rows
  int32_t* expert_begins = nullptr;  // [experts + 1]: rows of expert_rows, of the latest layer
  int32_t* sorted_tokens = nullptr;  // [tokens * used experts]
  float* gathered_rows = nullptr;    // [tokens, model_dim]: the input of one expert
  float* expert_rows = nullptr;      // [tokens * (used experts and the shared one), model_dim]

  float* cosines = nullptr;       // [tokens, rotated_dim / 2], filled once a step for each rope
  float* sines = nullptr;         // [ropes][tokens, rotated_dim / 2]
  float* logit_inputs = nullptr;  // [logit_rows, model_dim]; last stage
  float* local_logits = nullptr;  // [logit_rows, vocabulary rows of this rank]; last stage
  float* gathered = nullptr;      // the ranks' local_logits one after another; last stage
  float* logits = nullptr;        // [logit_rows, vocabulary]; last stage
  std::byte* worker_scratch = nullptr;  // [threads][kWorkerScratchBytes]
  std::byte* shared_scratch = nullptr;
  int64_t shared_scratch_bytes = 0;

 private:
  void Cut(const spec::ModelSpec& model, const topology::RankPart& part,
           const kernels::KernelTable& table, const ActivationLimits& limits,
           device::WorkspaceCutter* cutter);
  void CutOptional(const spec::ModelSpec& model, const topology::RankPart& part, int64_t tokens,
                   device::WorkspaceCutter* cutter);

  device::DeviceBuffer buffer_;
};

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_ACTIVATIONS_H_
