// The layouts of the compressed-tensors library (LLM Compressor): packed integers, FP8, NVFP4,
// MXFP4 and MXFP8.
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_COMPRESSED_TENSORS_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_COMPRESSED_TENSORS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/weights/json_config.h"
#include "runtime/weights/quantized/method.h"

namespace trireme::weights {

// InvalidArgument for settings of other layouts.
absl::StatusOr<std::unique_ptr<Method>> CompressedTensorsMethod(const JsonConfig& config);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_COMPRESSED_TENSORS_H_
