// The pure function that cuts a model: the same inputs give the same partition everywhere.
#ifndef TRIREME_TOPOLOGY_PARTITION_MODEL_H_
#define TRIREME_TOPOLOGY_PARTITION_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "topology/partition.h"

namespace trireme::topology {

// InvalidArgument with both numbers when: tensor_ranks is not 1, 2, 4 or 8 or more than the query
// heads; stages is not in 1 .. layers; stage_layers has the wrong count, a layer count below 1, or
// another sum; an extent is not positive.
absl::StatusOr<Partition> PartitionModel(const ModelExtents& extents, const Layout& layout);

// First vocabulary row of a tensor rank, or the end for rank == tensor_ranks: whole units, as even
// as they come.
int64_t VocabularyBorder(int64_t vocabulary, int tensor_rank, int tensor_ranks);

// The columns of a hidden layer `hidden_dim` wide that one tensor rank holds, and their leaves: a
// model may have layers and experts of several widths.
struct HiddenPart {
  Range columns;  // may be empty
  std::vector<Leaf> leaves;
};
HiddenPart PartOfHidden(int64_t hidden_dim, int tensor_rank, int tensor_ranks);

// Runs of the `units` units by leaf: 8 ranges that cover [0, units), some of them empty.
std::vector<Range> LeafRanges(int64_t units);

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_PARTITION_MODEL_H_
