#include "topology/partition_model.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "topology/partition.h"

namespace trireme::topology {
namespace {

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

absl::Status CheckExtents(const ModelExtents& extents) {
  if (extents.layers < 1 || extents.query_heads < 1 || extents.key_value_heads < 1 ||
      extents.hidden_dim < 1 || extents.vocabulary < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the model's extents must be positive: layers %d, query heads %d, "
                        "key/value heads %d, hidden width %d, "
                        "vocabulary %d",
                        extents.layers, extents.query_heads, extents.key_value_heads,
                        extents.hidden_dim, extents.vocabulary));
  }
  if (extents.query_heads % extents.key_value_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d query heads cannot share %d key/value heads evenly",
                        extents.query_heads, extents.key_value_heads));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> StageLayers(const ModelExtents& extents,
                                                 const Layout& layout) {
  if (layout.stages < 1 || layout.stages > extents.layers) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%d stages for a model of %d layers: a stage needs at least one layer; use 1 to %d stages",
        layout.stages, extents.layers, extents.layers));
  }
  if (layout.stage_layers.empty()) {
    std::vector<int64_t> even(layout.stages, extents.layers / layout.stages);
    for (int64_t stage = 0; stage < extents.layers % layout.stages; ++stage) {
      ++even[stage];
    }
    return even;
  }
  const std::vector<int64_t>& given = layout.stage_layers;
  if (static_cast<int>(given.size()) != layout.stages) {
    return absl::InvalidArgumentError(absl::StrFormat("%d stages, but layers are given for %d: %s",
                                                      layout.stages, given.size(),
                                                      absl::StrJoin(given, ",")));
  }
  const bool all_positive =
      std::all_of(given.begin(), given.end(), [](int64_t n) { return n >= 1; });
  const int64_t sum = std::accumulate(given.begin(), given.end(), int64_t{0});
  if (!all_positive || sum != extents.layers) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "layers per stage %s add up to %d; the model has %d, and each stage needs at least one",
        absl::StrJoin(given, ","), sum, extents.layers));
  }
  return given;
}

absl::Status CheckTensorRanks(const ModelExtents& extents, int tensor_ranks) {
  if (tensor_ranks != 1 && tensor_ranks != 2 && tensor_ranks != 4 && tensor_ranks != 8) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%d tensor ranks: use 1, 2, 4 or 8 (the reduction tree has 8 leaves)", tensor_ranks));
  }
  if (tensor_ranks > extents.query_heads) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%d tensor ranks for a model of %d query heads: a rank needs at least one; use fewer",
        tensor_ranks, extents.query_heads));
  }
  return absl::OkStatus();
}

// The leaves of one tensor rank that hold something, and the range that they cover.
std::vector<Leaf> LeavesOfRank(const std::vector<Range>& leaves, int tensor_rank, int tensor_ranks,
                               Range* covered) {
  const int per_rank = kLeaves / tensor_ranks;
  std::vector<Leaf> mine;
  *covered = {leaves[tensor_rank * per_rank].begin, leaves[(tensor_rank + 1) * per_rank - 1].end};
  for (int index = tensor_rank * per_rank; index < (tensor_rank + 1) * per_rank; ++index) {
    if (leaves[index].size() > 0) {
      mine.push_back({.index = index, .units = leaves[index]});
    }
  }
  return mine;
}

RankPart TensorPart(const ModelExtents& extents, int tensor_rank, int tensor_ranks) {
  RankPart part;
  part.tensor_rank = tensor_rank;
  part.tensor_ranks = tensor_ranks;
  part.attention_leaves =
      LeavesOfRank(LeafRanges(extents.query_heads), tensor_rank, tensor_ranks, &part.query_heads);
  const int64_t shared_by = extents.query_heads / extents.key_value_heads;
  part.key_value_heads = {part.query_heads.begin / shared_by,
                          (part.query_heads.end - 1) / shared_by + 1};

  HiddenPart hidden = PartOfHidden(extents.hidden_dim, tensor_rank, tensor_ranks);
  part.hidden = hidden.columns;
  part.hidden_leaves = std::move(hidden.leaves);

  part.vocabulary = {VocabularyBorder(extents.vocabulary, tensor_rank, tensor_ranks),
                     VocabularyBorder(extents.vocabulary, tensor_rank + 1, tensor_ranks)};
  return part;
}

}  // namespace

HiddenPart PartOfHidden(int64_t hidden_dim, int tensor_rank, int tensor_ranks) {
  HiddenPart part;
  part.leaves = LeavesOfRank(LeafRanges(CeilDivide(hidden_dim, kHiddenUnit)), tensor_rank,
                             tensor_ranks, &part.columns);
  const auto to_columns = [hidden_dim](Range units) {
    return Range{std::min(units.begin * kHiddenUnit, hidden_dim),
                 std::min(units.end * kHiddenUnit, hidden_dim)};
  };
  part.columns = to_columns(part.columns);
  for (Leaf& leaf : part.leaves) {
    leaf.units = to_columns(leaf.units);
  }
  return part;
}

int64_t VocabularyBorder(int64_t vocabulary, int tensor_rank, int tensor_ranks) {
  const int64_t units = CeilDivide(vocabulary, kVocabularyUnit);
  return std::min(units * tensor_rank / tensor_ranks * kVocabularyUnit, vocabulary);
}

std::vector<Range> LeafRanges(int64_t units) {
  // Unit i is in leaf floor(8 i / n), so leaf l begins at the first i with 8 i >= l n.
  std::vector<Range> leaves(kLeaves);
  for (int64_t leaf = 0; leaf < kLeaves; ++leaf) {
    leaves[leaf] = {CeilDivide(leaf * units, kLeaves), CeilDivide((leaf + 1) * units, kLeaves)};
  }
  return leaves;
}

absl::StatusOr<Partition> PartitionModel(const ModelExtents& extents, const Layout& layout) {
  if (absl::Status status = CheckExtents(extents); !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckTensorRanks(extents, layout.tensor_ranks); !status.ok()) {
    return status;
  }
  absl::StatusOr<std::vector<int64_t>> stage_layers = StageLayers(extents, layout);
  if (!stage_layers.ok()) {
    return stage_layers.status();
  }
  Partition partition{.extents = extents, .layout = layout, .parts = {}};
  partition.layout.stage_layers = *stage_layers;
  int64_t first_layer = 0;
  for (int stage = 0; stage < layout.stages; ++stage) {
    const Range layers = {first_layer, first_layer + (*stage_layers)[stage]};
    for (int tensor_rank = 0; tensor_rank < layout.tensor_ranks; ++tensor_rank) {
      RankPart part = TensorPart(extents, tensor_rank, layout.tensor_ranks);
      part.rank = stage * layout.tensor_ranks + tensor_rank;
      part.stage = stage;
      part.layers = layers;
      part.first_stage = stage == 0;
      part.last_stage = stage == layout.stages - 1;
      partition.parts.push_back(part);
    }
    first_layer = layers.end;
  }
  return partition;
}

}  // namespace trireme::topology
