// The published methods of quantisation: each is a reader that knows its config keys and its
// tensors. A new method is a file in this folder and a line in the table of method.cc.
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_METHOD_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_METHOD_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/weights/json_config.h"
#include "runtime/weights/quantized/module_tensors.h"
#include "runtime/weights/quantized/quantized_matrix.h"

namespace trireme::weights {

// Null where a module is stored plainly.
using MaybeMatrix = std::shared_ptr<const QuantizedMatrix>;

// Immutable; threads may read it at any time.
class Method {
 public:
  virtual ~Method() = default;

  // The matrix of a module, whose extents are `wanted` where the model says them. Reads no codes.
  // InvalidArgument names the tensor that is missing, of another type or shape, or contradicts
  // another; values are checked when they are decoded.
  virtual absl::StatusOr<MaybeMatrix> Read(const ModuleTensors& module,
                                           const std::optional<MatrixExtents>& wanted) const = 0;
};

// The settings of the model's quantisation in `directory`: the object quantization_config of
// config.json, or a file of its own beside it; null where there are none.
absl::StatusOr<std::unique_ptr<JsonConfig>> FindQuantizationConfig(const std::string& directory,
                                                                   const JsonConfig& config);

// By quant_method. InvalidArgument names the method or the setting that this build does not read,
// and what it reads.
absl::StatusOr<std::unique_ptr<Method>> MethodOf(const JsonConfig& config);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_METHOD_H_
