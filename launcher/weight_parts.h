// The bytes of a model's weights by what they are for, as one stage's tensor ranks hold them
// packed: what each layer, the embedding and the output matrix take, and what a token reads of
// them.
#ifndef TRIREME_LAUNCHER_WEIGHT_PARTS_H_
#define TRIREME_LAUNCHER_WEIGHT_PARTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/weights/checkpoint.h"
#include "topology/partition.h"

namespace trireme::launcher {

class WeightParts {
 public:
  // The errors of PartitionModel and PlanShard. Reads no weights.
  static absl::StatusOr<WeightParts> Of(const weights::Checkpoint& checkpoint, int tensor_ranks);

  // Of all tensor ranks together.
  double LayerBytes(int64_t layer) const;
  double MeanLayerBytes() const;
  double OutputBytes() const;  // norm and matrix; a tied one shares the embedding's

  // Weights that one token reads on one rank: its layers, and on the last stage the output matrix.
  int64_t DecodeBytes(const topology::RankPart& part) const;

 private:
  struct OfRank {
    std::vector<int64_t> layers;  // [layers]
    int64_t output = 0;
  };

  std::vector<OfRank> ranks_;  // [tensor ranks]
};

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_WEIGHT_PARTS_H_
