// The tensors that a published scheme stores for one linear module ("model.layers.0.mlp.up_proj"),
// by their suffix ("qweight"), with checks of types and extents. Not for what they mean: each
// scheme has a reader of its own.
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_MODULE_TENSORS_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_MODULE_TENSORS_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace trireme::weights {

// One tensor as it lies in a file.
struct StoredPart {
  std::string name;
  std::string dtype;                // of safetensors: "I32"
  std::vector<int64_t> extents;     // slowest first; empty for a scalar
  absl::Span<const uint8_t> bytes;  // mapped, at any alignment

  int64_t values() const;
};

// Where parts come from. Immutable; threads may read it at any time.
class PartSource {
 public:
  virtual ~PartSource() = default;

  virtual std::optional<StoredPart> FindPart(absl::string_view name) const = 0;

  // An InvalidArgument status about a part, which need not exist.
  virtual absl::Status PartError(absl::string_view name, absl::string_view text) const = 0;
};

// A matrix W[rows, columns] = [outputs, inputs].
struct MatrixExtents {
  int64_t rows = 0;
  int64_t columns = 0;

  friend bool operator==(const MatrixExtents&, const MatrixExtents&) = default;
};

class ModuleTensors {
 public:
  // `source` outlives this.
  ModuleTensors(const PartSource& source, std::string name)
      : source_(source), name_(std::move(name)) {}

  const PartSource& source() const { return source_; }
  const std::string& name() const { return name_; }
  // "model.layers.0.mlp.up_proj.qweight"; a suffix of experts begins with '_' and stands without a
  // dot.
  std::string NameOf(absl::string_view suffix) const;

  std::optional<StoredPart> Find(absl::string_view suffix) const;
  bool Has(absl::string_view suffix) const { return Find(suffix).has_value(); }

  // InvalidArgument when the part is missing, empty or of another type; all name it.
  absl::StatusOr<StoredPart> Get(absl::string_view suffix,
                                 std::initializer_list<absl::string_view> dtypes) const;
  absl::StatusOr<StoredPart> Get(absl::string_view suffix,
                                 std::initializer_list<absl::string_view> dtypes,
                                 absl::Span<const int64_t> extents) const;

  absl::Status Error(absl::string_view suffix, absl::string_view text) const {
    return source_.PartError(NameOf(suffix), text);
  }
  absl::Status CheckDtype(const StoredPart& part,
                          std::initializer_list<absl::string_view> dtypes) const;
  absl::Status CheckExtents(const StoredPart& part, absl::Span<const int64_t> extents) const;

  // What the part `suffix` says of the matrix's extents against what the model wants.
  absl::Status CheckMatrix(absl::string_view suffix, const MatrixExtents& found,
                           const std::optional<MatrixExtents>& wanted) const;
  // InvalidArgument where a plain `weight` stands beside the packed part.
  absl::Status CheckNoPlainWeight(absl::string_view packed_suffix) const;

 private:
  const PartSource& source_;
  const std::string name_;
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_MODULE_TENSORS_H_
