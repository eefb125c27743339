#include "launcher/weight_parts.h"

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel_table.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/shard_plan.h"
#include "runtime/weights/token_work.h"
#include "topology/partition_model.h"

namespace trireme::launcher {
namespace {

WeightPart PartOf(const weights::PlannedTensor& tensor, const spec::ModelSpec& model) {
  const weights::TokenWork work = weights::WorkOf(tensor, model);
  WeightPart part = {.read_bytes = static_cast<double>(work.bytes),
                     .operations = 2 * static_cast<double>(work.AllProducts())};
  for (const weights::PlannedSlice& slice : tensor.slices) {
    part.bytes += static_cast<double>(slice.arena_bytes);
    part.values +=
        tensor.is_vector ? 0 : static_cast<double>(slice.shape.rows * slice.shape.columns);
  }
  return part;
}

WeightPart MeanOf(const std::vector<WeightPart>& parts) {
  WeightPart mean;
  for (const WeightPart& part : parts) {
    mean += part;
  }
  const auto count = static_cast<double>(parts.size());
  return {.bytes = mean.bytes / count,
          .values = mean.values / count,
          .read_bytes = mean.read_bytes / count,
          .operations = mean.operations / count};
}

}  // namespace

WeightPart& WeightPart::operator+=(const WeightPart& other) {
  bytes += other.bytes;
  values += other.values;
  read_bytes += other.read_bytes;
  operations += other.operations;
  return *this;
}

absl::StatusOr<WeightParts> WeightPartsOf(const weights::Checkpoint& checkpoint, int tensor_ranks) {
  const spec::ModelSpec& model = checkpoint.model_spec();
  ASSIGN_OR_RETURN(const topology::Partition partition,
                   topology::PartitionModel(model.Extents(), {.tensor_ranks = tensor_ranks}));
  WeightParts parts = {.layers = std::vector<WeightPart>(model.layers.size())};
  for (const topology::RankPart& part : partition.parts) {
    ASSIGN_OR_RETURN(const weights::ShardPlan plan,
                     weights::PlanShard(checkpoint, part, *kernels::FindKernelTable("")));
    for (const weights::PlannedTensor& tensor : plan.tensors) {
      if (tensor.layer >= 0) {
        parts.layers[static_cast<size_t>(tensor.layer)] += PartOf(tensor, model);
      } else if (tensor.role != spec::Role::kEmbedding) {
        parts.output += PartOf(tensor, model);
      }
    }
  }
  parts.mean_layer = MeanOf(parts.layers);
  return parts;
}

}  // namespace trireme::launcher
