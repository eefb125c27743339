// One tensor of a checkpoint by the name that the plain model gives it, for those who want its
// values: a stored tensor, the matrix that quantised tensors make, or one expert of several that
// are stored together.
#ifndef TRIREME_RUNTIME_WEIGHTS_TENSOR_VALUES_H_
#define TRIREME_RUNTIME_WEIGHTS_TENSOR_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/weights/checkpoint.h"
#include "topology/partition.h"

namespace trireme::weights {

struct TensorRows {
  StoredTensor stored;
  topology::Range rows;          // of the stored tensor
  std::vector<int64_t> extents;  // slowest first
};

// "model.layers.0.mlp.experts.3.down_proj" is rows of "model.layers.0.mlp.experts.down_proj".
// InvalidArgument names a tensor that is not there, or cannot be decoded.
absl::StatusOr<TensorRows> FindTensorRows(const Checkpoint& checkpoint, const std::string& name);

// Writes the values as float32 into a safetensors file, a row at a time. Errors: those of
// SafetensorsWriter, and InvalidArgument for a tensor that holds what is no number.
absl::Status WriteTensorValues(const TensorRows& tensor, const std::string& name,
                               const std::string& path);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_TENSOR_VALUES_H_
