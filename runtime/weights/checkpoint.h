// A model on disk, whatever its container: metadata for the family function, tensors by name with
// format, extents and bytes. A GGUF file, whole or in parts (gguf_checkpoint.h), or a Hugging Face
// directory (hugging_face_checkpoint.h).
#ifndef TRIREME_RUNTIME_WEIGHTS_CHECKPOINT_H_
#define TRIREME_RUNTIME_WEIGHTS_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/formats/weight_format.h"
#include "runtime/base/fingerprint.h"
#include "runtime/spec/metadata.h"
#include "runtime/spec/model_spec.h"
#include "runtime/weights/gguf.h"
#include "runtime/weights/json_config.h"
#include "runtime/weights/quantized/quantized_matrix.h"
#include "topology/partition.h"

namespace trireme::weights {

// A matrix or vector in storage: rows of whole storage blocks one after another, or a matrix of a
// quantised checkpoint, which has no rows of its own.
struct StoredTensor {
  std::string name;
  kernels::WeightFormat format = kernels::WeightFormat::kF32;
  int64_t rows = 0;  // of all extents but the last; 1 for a vector
  int64_t columns = 0;
  int64_t row_bytes = 0;
  const std::byte* data = nullptr;  // mapped; valid while the checkpoint lives; any alignment
  // In the place of data and row_bytes; valid while the checkpoint lives.
  std::shared_ptr<const QuantizedMatrix> quantized;

  double StoredBytesOf(int64_t values) const;

  // Columns of one row as float32. InvalidArgument names a tensor that holds what is no number.
  absl::Status Decode(int64_t row, topology::Range column_range, float* values) const;
};

// Immutable; threads may read it at any time.
class Checkpoint : public spec::Metadata {
 public:
  // Maps the files, reads their headers and the model's spec; no weights are read. `path` is a GGUF
  // file (the first part of a split one), a directory with config.json and safetensors files, one
  // such file or its index. Errors name the file; NotFound means that a file is missing, not a part
  // of one.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(const std::string& path);

  const spec::ModelSpec& model_spec() const { return spec_; }

  // For messages.
  virtual const std::string& name() const = 0;

  // Null unless the container is GGUF.
  virtual const GgufFile* gguf() const { return nullptr; }

  // generation_config.json; null where there is none.
  virtual const JsonConfig* generation_config() const { return nullptr; }

  // NotFound when there is no such tensor, InvalidArgument when its type is no weight format that
  // this build multiplies or its extents (slowest first, ones in front aside) differ; both name the
  // tensor.
  absl::StatusOr<StoredTensor> Tensor(absl::string_view name,
                                      absl::Span<const int64_t> extents) const;
  absl::StatusOr<StoredTensor> Tensor(absl::string_view name, int64_t rows, int64_t columns) const {
    return Tensor(name, {rows, columns});
  }

  // The matrix that a quantised checkpoint stores in the place of this tensor, whose extents are
  // `wanted` where they are known; null where the tensor is stored plainly. InvalidArgument names
  // the tensor which contradicts the others.
  virtual absl::StatusOr<std::shared_ptr<const QuantizedMatrix>> Quantized(
      absl::string_view name, const std::optional<MatrixExtents>& wanted) const;

  // The names of the plain model for all matrices that are stored quantised, in file order.
  virtual std::vector<std::string> QuantizedNames() const { return {}; }

  // True for a tensor that changes no result of this build (a scale of activations).
  virtual bool IsAdvisory(absl::string_view /*name*/) const { return false; }

  // Names of tensors in the file which are not among `used`, in file order.
  std::vector<std::string> UnusedTensors(absl::Span<const std::string> used) const;

  // A hash over metadata, tensor names, extents and formats and a sample of the data: tells two
  // different models apart, does not prove integrity.
  uint64_t FingerprintValue() const;

  // FailedPrecondition when a file changed on disk since it was opened.
  virtual absl::Status CheckUnchanged() const = 0;

  std::optional<std::vector<int64_t>> TensorExtents(absl::string_view name) const override;
  absl::StatusOr<std::vector<float>> TensorValues(absl::string_view name) const override;

 protected:
  struct FoundTensor {
    std::string type_name;
    std::optional<kernels::WeightFormat> format;
    std::vector<int64_t> extents;  // slowest first
    absl::Span<const uint8_t> bytes;
  };

  virtual std::optional<FoundTensor> Find(absl::string_view name) const = 0;
  virtual std::vector<absl::string_view> TensorNames() const = 0;  // in file order
  virtual void AddMetadata(Fingerprint* hash) const = 0;

 private:
  spec::ModelSpec spec_;
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_CHECKPOINT_H_
