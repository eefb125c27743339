// GPTQ (arXiv 2210.17323) in the layout of AutoGPTQ and GPTQModel: codes in words along the inputs,
// zero points in words along the outputs.
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_GPTQ_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_GPTQ_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/weights/json_config.h"
#include "runtime/weights/quantized/method.h"

namespace trireme::weights {

// InvalidArgument for settings of other layouts.
absl::StatusOr<std::unique_ptr<Method>> GptqMethod(const JsonConfig& config);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_GPTQ_H_
