// What a family function may ask of a checkpoint, whatever its container: typed keys, tensor
// extents, small tensors. Implemented by runtime/weights/checkpoint; errors name the file and the
// key.
#ifndef TRIREME_RUNTIME_SPEC_METADATA_H_
#define TRIREME_RUNTIME_SPEC_METADATA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace trireme::spec {

enum class Container : uint8_t { kGguf, kHuggingFace };

// Keys are those of the container: GGUF's "llama.block_count", or config.json's
// "num_hidden_layers", with dots into nested objects ("rope_scaling.factor"). A JSON null counts as
// absent.
class Metadata {
 public:
  virtual ~Metadata() = default;

  virtual Container container() const = 0;

  virtual bool Has(absl::string_view key) const = 0;

  // NotFound when the key is absent, InvalidArgument when its value has another type or does not
  // fit.
  virtual absl::StatusOr<int64_t> Integer(absl::string_view key) const = 0;
  virtual absl::StatusOr<double> Float(absl::string_view key) const = 0;
  virtual absl::StatusOr<bool> Bool(absl::string_view key) const = 0;
  virtual absl::StatusOr<std::string> String(absl::string_view key) const = 0;

  // A scalar counts as an array of one; true and false as 1 and 0 in an array.
  virtual absl::StatusOr<std::vector<int64_t>> Integers(absl::string_view key) const = 0;
  virtual absl::StatusOr<std::vector<double>> Floats(absl::string_view key) const = 0;
  virtual absl::StatusOr<std::vector<std::string>> Strings(absl::string_view key) const = 0;

  // Elements of an array-valued key, without reading them; NotFound when absent.
  virtual absl::StatusOr<int64_t> ArrayLength(absl::string_view key) const = 0;

  // Extents of a tensor, slowest axis first ([rows, columns] for a matrix), or nothing when there
  // is no such tensor.
  virtual std::optional<std::vector<int64_t>> TensorExtents(absl::string_view name) const = 0;

  // All values of a small tensor (at most 1 Mi values).
  virtual absl::StatusOr<std::vector<float>> TensorValues(absl::string_view name) const = 0;

  // An InvalidArgument status about `key` that names the file.
  virtual absl::Status ErrorAt(absl::string_view key, absl::string_view text) const = 0;
};

}  // namespace trireme::spec

#endif  // TRIREME_RUNTIME_SPEC_METADATA_H_
