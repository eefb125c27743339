// MXFP4 experts as gpt-oss ships them.
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_MXFP4_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_MXFP4_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/weights/json_config.h"
#include "runtime/weights/quantized/method.h"

namespace trireme::weights {

// InvalidArgument for settings of other layouts.
absl::StatusOr<std::unique_ptr<Method>> Mxfp4Method(const JsonConfig& config);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_MXFP4_H_
