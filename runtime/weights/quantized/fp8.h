// FP8 weights with a scale for the tensor, each row or each block, as transformers and GPTQModel
// write them.
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_FP8_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_FP8_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/weights/json_config.h"
#include "runtime/weights/quantized/method.h"

namespace trireme::weights {

// InvalidArgument for settings of other layouts.
absl::StatusOr<std::unique_ptr<Method>> Fp8Method(const JsonConfig& config);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_FP8_H_
