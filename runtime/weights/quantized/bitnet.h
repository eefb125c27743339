// Packed ternary weights of BitNet b1.58 (arXiv 2402.17764).
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_BITNET_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_BITNET_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/weights/json_config.h"
#include "runtime/weights/quantized/method.h"

namespace trireme::weights {

// InvalidArgument for settings of other layouts.
absl::StatusOr<std::unique_ptr<Method>> BitNetMethod(const JsonConfig& config);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_BITNET_H_
