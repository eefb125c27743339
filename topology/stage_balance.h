// How many layers each stage takes when the file leaves it open: the cut whose slowest stage is the
// fastest, by dynamic programming over what each layer costs on each stage. Stages may be unequal
// (slower nodes, less memory), layers too (other formats), and the last stage has the output matrix
// to multiply besides.
#ifndef TRIREME_TOPOLOGY_STAGE_BALANCE_H_
#define TRIREME_TOPOLOGY_STAGE_BALANCE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

namespace trireme::topology {

// One stage as a candidate for any run of layers.
struct StageCost {
  std::vector<double> layer_seconds;  // [layers]: of each layer, were it here
  double fixed_seconds = 0;           // embedding, output matrix
  std::vector<int64_t> layer_bytes;   // [layers]: weights and KV that it would take here
  int64_t fixed_bytes = 0;
  std::optional<int64_t> memory_bytes;  // unset: not limited
};

// Layers of each stage, at least one each. Among cuts whose slowest stage is equally fast, the one
// that gives earlier stages more. InvalidArgument when there are more stages than layers;
// ResourceExhausted when no cut fits into the stages' memory.
absl::StatusOr<std::vector<int64_t>> BalanceStages(const std::vector<StageCost>& stages);

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_STAGE_BALANCE_H_
