#include "runtime/weights/shard_plan.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/base/status_macros.h"
#include "runtime/spec/model_spec.h"
#include "runtime/spec/tensor_roles.h"
#include "runtime/weights/checkpoint.h"
#include "topology/partition_model.h"

namespace trireme::weights {
namespace {

constexpr int64_t kArenaAlignment = 64;
constexpr int64_t kStrangersNamed = 20;
// Read by the family functions.
constexpr const char* kRopeTensors[] = {"rope_freqs.weight", "rope_factors_long.weight",
                                        "rope_factors_short.weight"};

int64_t AlignUp(int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

// A rectangle of a role's matrix that one rank holds.
struct Rectangle {
  topology::Range rows;
  topology::Range columns;
  int leaf_index = 0;
};

topology::Range Scaled(topology::Range range, int64_t unit) {
  return {range.begin * unit, range.end * unit};
}

// The cut of one layer on one rank.
class LayerCut {
 public:
  LayerCut(const topology::RankPart& part, const spec::LayerSpec& layer)
      : part_(part), layer_(layer) {}

  std::vector<Rectangle> Rectangles(const spec::TensorRole& role, int64_t rows,
                                    int64_t columns) const {
    const topology::Range all_rows = {0, rows};
    const topology::Range all_columns = {0, columns};
    const spec::AttentionSpec& attention = layer_.attention;
    const auto whole = [&] { return std::vector<Rectangle>{{all_rows, all_columns}}; };
    const auto some_rows = [&](topology::Range range) {
      return std::vector<Rectangle>{{range, all_columns}};
    };
    switch (role.split) {
      case spec::SplitRule::kReplicated:
      case spec::SplitRule::kOwnHeads:
        return whole();
      case spec::SplitRule::kVocabularyRows:
        return some_rows(part_.vocabulary);
      case spec::SplitRule::kQueryHeadRows:
        return IsOneGainForAll(role)
                   ? whole()
                   : some_rows(Scaled(part_.query_heads, rows / attention.query_heads));
      case spec::SplitRule::kKeyValueHeadRows:
        return IsOneGainForAll(role)
                   ? whole()
                   : some_rows(Scaled(part_.key_value_heads, rows / attention.key_value_heads));
      case spec::SplitRule::kQueryHeadColumns:
        return Leaves(all_rows, part_.attention_leaves, columns / attention.query_heads);
      case spec::SplitRule::kHiddenRows:
      case spec::SplitRule::kExpertRows:
      case spec::SplitRule::kSharedRows:
        return some_rows(Hidden(rows).columns);
      case spec::SplitRule::kHiddenColumns:
      case spec::SplitRule::kExpertColumns:
      case spec::SplitRule::kSharedColumns:
        return Leaves(all_rows, Hidden(columns).leaves, 1);
    }
    CHECK(false);
  }

  // Which matrices of a role this rank has.
  topology::Range Indices(const spec::TensorRole& role) const {
    return role.place == spec::Place::kEveryHead
               ? part_.query_heads
               : topology::Range{0, spec::CountOf(role.place, layer_)};
  }

 private:
  topology::HiddenPart Hidden(int64_t hidden_dim) const {
    return topology::PartOfHidden(hidden_dim, part_.tensor_rank, part_.tensor_ranks);
  }

  bool IsOneGainForAll(const spec::TensorRole& role) const {
    return (role.role == spec::Role::kQueryNorm || role.role == spec::Role::kKeyNorm) &&
           layer_.attention.query_key_norm == spec::QueryKeyNorm::kPerHead;
  }

  static std::vector<Rectangle> Leaves(topology::Range rows,
                                       const std::vector<topology::Leaf>& leaves, int64_t unit) {
    std::vector<Rectangle> rectangles;
    for (const topology::Leaf& leaf : leaves) {
      rectangles.push_back(
          {.rows = rows, .columns = Scaled(leaf.units, unit), .leaf_index = leaf.index});
    }
    return rectangles;
  }

  const topology::RankPart& part_;
  const spec::LayerSpec& layer_;
};

// Weights and quantised activations come in groups of 32 columns, so every leaf of the matrix, on
// whatever rank, must begin at such a border. Heads of a width that 32 does not divide break that;
// their matrix is multiplied in float32 on every layout alike.
bool LeavesKeepGroupsWhole(spec::SplitRule split, const spec::AttentionSpec& attention) {
  if (split != spec::SplitRule::kQueryHeadColumns) {
    return true;
  }
  for (const topology::Range& leaf : topology::LeafRanges(attention.query_heads)) {
    if (leaf.begin * attention.output_dim() % kernels::kGroupValues != 0) {
      return false;
    }
  }
  return true;
}

bool Holds(spec::Place place, int64_t layer, const topology::RankPart& part) {
  switch (place) {
    case spec::Place::kFirstStage:
      return part.first_stage;
    case spec::Place::kLastStage:
      return part.last_stage;
    case spec::Place::kEveryLayer:
    case spec::Place::kEveryExpert:
    case spec::Place::kEveryHead:
      return part.layers.contains(layer);
  }
  CHECK(false);
}

bool IsInLayers(spec::Place place) {
  return place != spec::Place::kFirstStage && place != spec::Place::kLastStage;
}

// The layer that a tensor's name speaks of, or -1.
int64_t LayerOfName(absl::string_view name) {
  int64_t layer = -1;
  if (absl::ConsumePrefix(&name, "blk.") || absl::ConsumePrefix(&name, "model.layers.")) {
    const absl::string_view digits = name.substr(0, name.find('.'));
    return absl::SimpleAtoi(digits, &layer) ? layer : -1;
  }
  return -1;
}

class Planner {
 public:
  Planner(const Checkpoint& checkpoint, const topology::RankPart& part,
          const kernels::KernelTable& table)
      : checkpoint_(checkpoint), model_(checkpoint.model_spec()), table_(table) {
    plan_.part = part;
  }

  absl::StatusOr<ShardPlan> Plan() {
    for (const spec::TensorRole& role : spec::TensorRoles()) {
      const int64_t layers =
          IsInLayers(role.place) ? static_cast<int64_t>(model_.layers.size()) : 1;
      for (int64_t layer = 0; layer < layers; ++layer) {
        if (role.is_used == nullptr || role.is_used(model_, model_.layers[layer])) {
          RETURN_IF_ERROR(AddRole(role, layer));
        }
      }
    }
    RETURN_IF_ERROR(CheckUnused());
    return std::move(plan_);
  }

 private:
  absl::Status AddRole(const spec::TensorRole& role, int64_t layer) {
    const int64_t count = spec::CountOf(role.place, model_.layers[layer]);
    for (int64_t index = 0; index < count; ++index) {
      RETURN_IF_ERROR(Add(role, layer, index));
    }
    return absl::OkStatus();
  }

  absl::Status Add(const spec::TensorRole& role, int64_t layer, int64_t index) {
    const spec::LayerSpec& layer_spec = model_.layers[layer];
    const bool tied = role.role == spec::Role::kOutput && model_.tied_output;
    const spec::TensorSource& source = model_.source(tied ? spec::Role::kEmbedding : role.role);
    const std::string name = spec::TensorName(source, layer, index);
    ASSIGN_OR_RETURN(StoredTensor stored,
                     FindStored(name, spec::StoredExtents(role, model_, layer_spec)));
    const LayerCut cut(plan_.part, layer_spec);
    if (!Holds(role.place, layer, plan_.part) || !cut.Indices(role).contains(index)) {
      return absl::OkStatus();
    }
    PlannedTensor tensor;
    tensor.role = role.role;
    tensor.layer = IsInLayers(role.place) ? layer : -1;
    tensor.index = index;
    tensor.is_vector = role.columns == spec::Extent::kOne;
    tensor.is_transposed = source.is_transposed || tensor.is_vector;
    tensor.row_step = source.row_step;
    const int64_t rows = spec::ExtentOf(role.rows, model_, layer_spec);
    const int64_t columns = spec::ExtentOf(role.columns, model_, layer_spec);
    // A tensor for each expert has no rows of others.
    const int64_t index_rows = source.index_rows != 0 ? source.index_rows
                               : tensor.is_transposed ? columns
                                                      : rows;
    const bool is_numbered = source.name.find('#') != std::string::npos;
    tensor.first_row = is_numbered ? 0 : index * index_rows;
    (tensor.is_transposed ? tensor.first_column : tensor.first_row) += source.first_row;
    if (role.is_norm_gain) {
      tensor.value_offset = static_cast<float>(model_.norm_gain_offset);
    }
    if (!tensor.is_transposed) {  // else its rows are gathered as float32
      RETURN_IF_ERROR(ChooseFormat(&stored));
    }
    CheckInside(stored, tensor, rows, columns);
    tensor.stored = std::move(stored);
    if (tied && plan_.part.first_stage) {
      CHECK(plan_.tensors[0].role == spec::Role::kEmbedding);
      tensor.slices = plan_.tensors[0].slices;  // the embedding's own bytes
    } else {
      AddSlices(role, cut.Rectangles(role, rows, columns), layer_spec.attention, &tensor);
    }
    plan_.tensors.push_back(std::move(tensor));
    return absl::OkStatus();
  }

  absl::StatusOr<StoredTensor> FindStored(const std::string& name,
                                          const std::vector<int64_t>& extents) {
    if (last_.name == name && last_extents_ == extents) {  // the next expert of the same tensor
      return last_;
    }
    ASSIGN_OR_RETURN(last_, checkpoint_.Tensor(name, extents));
    last_extents_ = extents;
    if (last_.quantized != nullptr) {
      const std::vector<std::string>& parts = last_.quantized->part_names();
      used_.insert(used_.end(), parts.begin(), parts.end());
      last_has_format_ = false;
    }
    used_.push_back(name);
    return last_;
  }

  // Of a quantised matrix that this rank holds: once for all experts in it, since scales are read.
  absl::Status ChooseFormat(StoredTensor* stored) {
    if (stored->quantized == nullptr) {
      return absl::OkStatus();
    }
    if (!last_has_format_) {
      ASSIGN_OR_RETURN(last_.format, last_.quantized->MemoryFormat());
      last_has_format_ = true;
    }
    stored->format = last_.format;
    return absl::OkStatus();
  }

  // The extents that a family function gave for a part of a tensor hold the part.
  static void CheckInside(const StoredTensor& stored, const PlannedTensor& tensor, int64_t rows,
                          int64_t columns) {
    const int64_t last_row =
        tensor.first_row + (tensor.is_transposed ? columns - 1 : (rows - 1) * tensor.row_step);
    const int64_t last_column =
        tensor.first_column + (tensor.is_transposed ? (rows - 1) * tensor.row_step : columns - 1);
    CHECK_LT(last_row, stored.rows);
    CHECK_LT(last_column, stored.columns);
  }

  void AddSlices(const spec::TensorRole& role, const std::vector<Rectangle>& rectangles,
                 const spec::AttentionSpec& attention, PlannedTensor* tensor) {
    const StoredTensor& stored = tensor->stored;
    const bool has_groups = kernels::HasGroups(kernels::InfoOf(stored.format));
    const bool keep_format =
        !has_groups || (LeavesKeepGroupsWhole(role.split, attention) && !tensor->is_transposed);
    for (const Rectangle& rectangle : rectangles) {
      if (rectangle.rows.size() == 0 || rectangle.columns.size() == 0) {
        continue;
      }
      PlannedSlice slice;
      slice.shape = {.format = keep_format ? stored.format : kernels::WeightFormat::kF32,
                     .rows = rectangle.rows.size(),
                     .columns = rectangle.columns.size(),
                     .first_column = rectangle.columns.begin};
      slice.leaf_index = rectangle.leaf_index;
      slice.first_row = rectangle.rows.begin;
      slice.is_decoded = !keep_format;
      slice.arena_offset = plan_.arena_bytes;
      slice.arena_bytes = tensor->is_vector
                              ? rectangle.rows.size() * static_cast<int64_t>(sizeof(float))
                              : table_.packed_bytes(slice.shape);
      plan_.arena_bytes += AlignUp(slice.arena_bytes);
      plan_.source_bytes += static_cast<int64_t>(
          stored.StoredBytesOf(rectangle.rows.size() * rectangle.columns.size()));
      tensor->slices.push_back(slice);
    }
  }

  // A tensor that belongs to a part of the model which this build knows, but whose use it does not
  // (a bias, a scale), would silently give wrong results; any other tensor is only named. Layers
  // behind the trunk are those of draft modules.
  absl::Status CheckUnused() {
    used_.insert(used_.end(), std::begin(kRopeTensors), std::end(kRopeTensors));
    std::vector<std::string> strangers;
    for (const std::string& name : checkpoint_.UnusedTensors(used_)) {
      if (LayerOfName(name) >= static_cast<int64_t>(model_.layers.size()) ||
          checkpoint_.IsAdvisory(name)) {
        continue;
      }
      const size_t stem = name.rfind('.');
      if (stem != std::string::npos &&
          checkpoint_.TensorExtents(absl::StrCat(name.substr(0, stem), ".weight")) &&
          !absl::EndsWith(name, ".weight")) {
        return checkpoint_.ErrorAt(
            name, "belongs to a weight of this model, but this build does not know its use");
      }
      strangers.push_back(name);
    }
    if (!strangers.empty() && plan_.part.rank == 0) {
      const size_t count = strangers.size();
      strangers.resize(std::min<size_t>(count, kStrangersNamed));
      Log(LogLevel::kWarning,
          absl::StrCat(checkpoint_.name(), ": unused tensors: ", absl::StrJoin(strangers, ", "),
                       count > kStrangersNamed
                           ? absl::StrCat(" and ", count - kStrangersNamed, " more")
                           : ""));
    }
    return absl::OkStatus();
  }

  const Checkpoint& checkpoint_;
  const spec::ModelSpec& model_;
  const kernels::KernelTable& table_;
  ShardPlan plan_;
  std::vector<std::string> used_;
  StoredTensor last_;
  std::vector<int64_t> last_extents_;
  bool last_has_format_ = false;  // of a quantised one
};

}  // namespace

absl::StatusOr<ShardPlan> PlanShard(const Checkpoint& checkpoint, const topology::RankPart& part,
                                    const kernels::KernelTable& table) {
  return Planner(checkpoint, part, table).Plan();
}

}  // namespace trireme::weights
