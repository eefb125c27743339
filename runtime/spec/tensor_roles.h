// One table of all tensors: role, names in a checkpoint, extents, how it is split over tensor
// ranks. Loader, partitioner, footprint and tests iterate over it; none of them names a tensor.
#ifndef TRIREME_RUNTIME_SPEC_TENSOR_ROLES_H_
#define TRIREME_RUNTIME_SPEC_TENSOR_ROLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/spec/metadata.h"
#include "runtime/spec/model_spec.h"
#include "runtime/spec/tensor_source.h"

namespace trireme::spec {

enum class SplitRule : uint8_t {
  kReplicated,        // every rank holds all of it
  kVocabularyRows,    // rows by vocabulary range
  kQueryHeadRows,     // rows by query head
  kKeyValueHeadRows,  // rows by key/value head
  kHiddenRows,        // rows by hidden column
  kQueryHeadColumns,  // columns by query head, in leaves: the results are partial sums
  kHiddenColumns,     // columns by hidden column, in leaves
  kExpertRows,        // as kHiddenRows, of one expert's width
  kExpertColumns,
  kSharedRows,  // of the shared expert's width
  kSharedColumns,
  kOwnHeads,  // one matrix a head: whole, on the rank that has the head
};

enum class Extent : uint8_t {
  kOne,
  kModelDim,
  kVocabulary,
  kHeadDim,
  kQueryHeads,
  kQueryDim,      // all query heads
  kKeyValueDim,   // all key/value heads
  kQueryNormDim,  // gains of the norm of queries
  kKeyNormDim,    // gains of the norm of keys
  kAttendedDim,   // what all query heads give to the output matrix
  kHiddenDim,
  kExperts,
  kExpertDim,
  kSharedDim,
  kQueryRank,
  kLatentQueryDim,  // all query heads, unrotated and rotated
  kLatentKeyDim,    // the latent and the rotated key
  kLatentDim,
  kUnrotatedDim,
  kValueDim,
};

// Where in the model a role stands; decides which stages hold it, and how many of it there are.
enum class Place : uint8_t {
  kFirstStage,
  kLastStage,
  kEveryLayer,
  kEveryExpert,  // of every layer that has experts; '#' or the outermost extent numbers them
  kEveryHead,    // of every layer: one matrix a query head
};

struct TensorRole {
  Role role;
  const char* gguf_name;  // as in TensorSource
  const char* hugging_face_name;
  Place place;
  Extent rows;     // outputs, or the values of a vector
  Extent columns;  // kOne: a vector, kept as float32
  SplitRule split;
  bool is_norm_gain;  // ModelSpec::norm_gain_offset is added
  bool (*is_used)(const ModelSpec& model, const LayerSpec& layer);  // null: always
};

// All roles, by role.
absl::Span<const TensorRole> TensorRoles();
const TensorRole& RoleOf(Role role);

// The names of the llama family, which family functions change where theirs differ.
TensorSources DefaultSources(Container container);

// "blk.3.attn_q.weight" for "blk.*.attn_q.weight".
std::string TensorName(const TensorSource& source, int64_t layer, int64_t index);

// Extent of a role's axis in this model.
int64_t ExtentOf(Extent extent, const ModelSpec& model, const LayerSpec& layer);

// How many matrices of a role one layer has.
int64_t CountOf(Place place, const LayerSpec& layer);

// What the stored tensor of a role must measure, slowest axis first.
std::vector<int64_t> StoredExtents(const TensorRole& role, const ModelSpec& model,
                                   const LayerSpec& layer);

}  // namespace trireme::spec

#endif  // TRIREME_RUNTIME_SPEC_TENSOR_ROLES_H_
