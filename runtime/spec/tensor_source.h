// The roles that a model's tensors play, and where in a checkpoint the values of a role lie.
#ifndef TRIREME_RUNTIME_SPEC_TENSOR_SOURCE_H_
#define TRIREME_RUNTIME_SPEC_TENSOR_SOURCE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace trireme::spec {

enum class Role : uint8_t {
  kEmbedding,
  kOutputNorm,
  kOutputNormBias,
  kOutput,
  kAttentionNorm,
  kAttentionNormBias,
  kQuery,
  kKey,
  kValue,
  kQueryBias,
  kKeyBias,
  kValueBias,
  kQueryNorm,
  kKeyNorm,
  kSinks,
  kQueryDown,  // latent attention: into the queries' low rank
  kQueryDownNorm,
  kQueryUp,  // from the low rank to the heads
  kLatent,   // the keys' and values' latent, then the rotated key that all heads share
  kLatentNorm,
  kKeyUp,    // of one head: from an unrotated query into the latent
  kValueUp,  // of one head: from the latent to values
  kAttendedNorm,
  kAttentionOutput,
  kAttentionOutputBias,
  kPostAttentionNorm,
  kFeedForwardNorm,
  kFeedForwardNormBias,
  kGate,
  kUp,
  kHiddenNorm,
  kDown,
  kGateBias,
  kUpBias,
  kDownBias,
  kRouter,
  kRouterBias,
  kCorrectionBias,  // of the choice of experts, not of their weights
  kExpertGate,
  kExpertUp,
  kExpertDown,
  kExpertGateBias,
  kExpertUpBias,
  kExpertDownBias,
  kSharedRouter,  // the gate of the shared expert: one row
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kPostFeedForwardNorm,
};
inline constexpr int kRoleCount = 49;

// A role's matrix [rows, columns] (or vector [rows]) as part of a stored tensor. The stored tensor
// counts as a matrix: all its extents but the last are rows. `index` numbers the experts or heads
// of a role that has one matrix for each.
//   plain:      element (r, c) lies in stored row index * index_rows + first_row + r * row_step.
//   transposed: it lies in stored row index * index_rows + c, at column first_row + r * row_step.
//   A vector is read as the transpose of a matrix of one column.
struct TensorSource {
  std::string name;              // '*' stands for the layer's index, '#' for the expert's
  std::vector<int64_t> extents;  // of the stored tensor; empty: those of the role
  int64_t first_row = 0;
  int64_t row_step = 1;
  int64_t index_rows = 0;  // 0: the matrices of all indices lie one after another
  bool is_transposed = false;
};

using TensorSources = std::array<TensorSource, kRoleCount>;

}  // namespace trireme::spec

#endif  // TRIREME_RUNTIME_SPEC_TENSOR_SOURCE_H_
