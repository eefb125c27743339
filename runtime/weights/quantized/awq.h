// AWQ (arXiv 2306.00978) in the layout of AutoAWQ's GEMM kernels.
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_AWQ_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_AWQ_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/weights/json_config.h"
#include "runtime/weights/quantized/method.h"

namespace trireme::weights {

// InvalidArgument for settings of other layouts.
absl::StatusOr<std::unique_ptr<Method>> AwqMethod(const JsonConfig& config);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_AWQ_H_
