// How many tokens each expert of each layer has served since the start, on one rank. Ranks of one
// stage route alike, so one of them counts for all; what a stage in another process has counted
// comes in pieces (Piece, TakePiece).
#ifndef TRIREME_RUNTIME_MODEL_EXPERT_LOAD_H_
#define TRIREME_RUNTIME_MODEL_EXPERT_LOAD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/spec/model_spec.h"
#include "topology/partition.h"

namespace trireme::model {

struct ExpertLayerLoad {
  int64_t layer = 0;
  std::vector<uint64_t> tokens;  // [experts]
};

// Tokens of a layer's busiest expert over the mean of its experts; 0 before the first token.
double BusiestRatio(absl::Span<const uint64_t> tokens);

class ExpertLoad {
 public:
  // Counters of all layers that have experts.
  explicit ExpertLoad(const spec::ModelSpec& model);

  // One step of a layer that has experts; `begins` [experts + 1]: its tokens sorted by expert. One
  // thread adds or takes pieces; allocates nothing.
  void Add(int64_t layer, const int32_t* begins);

  // The layers of the range that have experts. Any thread.
  std::vector<ExpertLayerLoad> Layers(topology::Range layers) const;

  // The next counters of the range's layers, in at most `bytes_max` bytes (12 at least), round and
  // round; `cursor` begins at 0. Empty where no layer of the range has experts. Any thread.
  std::string Piece(topology::Range layers, size_t bytes_max, size_t* cursor) const;

  // What Piece gave on another rank of the same model. False for what is no piece. One thread.
  bool TakePiece(absl::string_view piece);

 private:
  size_t FirstOf(int64_t layer) const { return first_counters_[static_cast<size_t>(layer)]; }

  std::vector<size_t> first_counters_;  // [layers + 1]: of each layer, in counters_
  std::vector<std::atomic<uint64_t>> counters_;
};

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_EXPERT_LOAD_H_
