#include "launcher/weight_parts.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel_table.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/shard_plan.h"
#include "topology/partition_model.h"

namespace trireme::launcher {

absl::StatusOr<WeightParts> WeightParts::Of(const weights::Checkpoint& checkpoint,
                                            int tensor_ranks) {
  const topology::ModelExtents extents = checkpoint.model_spec().Extents();
  ASSIGN_OR_RETURN(const topology::Partition partition,
                   topology::PartitionModel(extents, {.tensor_ranks = tensor_ranks}));
  WeightParts parts;
  for (const topology::RankPart& part : partition.parts) {
    ASSIGN_OR_RETURN(const weights::ShardPlan plan,
                     weights::PlanShard(checkpoint, part, *kernels::FindKernelTable("")));
    OfRank of_rank = {.layers = std::vector<int64_t>(extents.layers)};
    for (const weights::PlannedTensor& tensor : plan.tensors) {
      int64_t bytes = 0;
      for (const weights::PlannedSlice& slice : tensor.slices) {
        bytes += slice.arena_bytes;
      }
      if (tensor.layer >= 0) {
        of_rank.layers[tensor.layer] += bytes;
      } else if (tensor.role != spec::Role::kEmbedding) {
        of_rank.output += bytes;  // a token reads one row of the embedding
      }
    }
    parts.ranks_.push_back(std::move(of_rank));
  }
  return parts;
}

double WeightParts::LayerBytes(int64_t layer) const {
  double bytes = 0;
  for (const OfRank& rank : ranks_) {
    bytes += static_cast<double>(rank.layers[layer]);
  }
  return bytes;
}

double WeightParts::MeanLayerBytes() const {
  double bytes = 0;
  const auto layers = static_cast<int64_t>(ranks_[0].layers.size());
  for (int64_t layer = 0; layer < layers; ++layer) {
    bytes += LayerBytes(layer);
  }
  return bytes / static_cast<double>(layers);
}

double WeightParts::OutputBytes() const {
  double bytes = 0;
  for (const OfRank& rank : ranks_) {
    bytes += static_cast<double>(rank.output);
  }
  return bytes;
}

int64_t WeightParts::DecodeBytes(const topology::RankPart& part) const {
  const OfRank& rank = ranks_[part.tensor_rank];
  int64_t bytes = part.last_stage ? rank.output : 0;
  for (int64_t layer = part.layers.begin; layer < part.layers.end; ++layer) {
    bytes += rank.layers[layer];
  }
  return bytes;
}

}  // namespace trireme::launcher
