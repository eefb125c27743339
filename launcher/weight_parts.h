// What a model's weights are for, as one stage's tensor ranks hold them packed: what each layer and
// the output matrix take, and what a token reads of them.
#ifndef TRIREME_LAUNCHER_WEIGHT_PARTS_H_
#define TRIREME_LAUNCHER_WEIGHT_PARTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/weights/checkpoint.h"

namespace trireme::launcher {

// Of all tensor ranks together.
struct WeightPart {
  double bytes = 0;       // held
  double values = 0;      // held, of matrices
  double read_bytes = 0;  // by one token
  double operations = 0;  // of one token; a multiply and an add are two

  WeightPart& operator+=(const WeightPart& other);
};

struct WeightParts {
  std::vector<WeightPart> layers;
  WeightPart mean_layer;
  WeightPart output;  // norm and matrix; a tied one shares the embedding's
};

// The errors of PartitionModel and PlanShard. Reads no weights.
absl::StatusOr<WeightParts> WeightPartsOf(const weights::Checkpoint& checkpoint, int tensor_ranks);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_WEIGHT_PARTS_H_
