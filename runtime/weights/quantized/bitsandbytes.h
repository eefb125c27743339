// bitsandbytes: NF4 and FP4 (QLoRA, arXiv 2305.14314) and LLM.int8 (arXiv 2208.07339).
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_BITSANDBYTES_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_BITSANDBYTES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/weights/json_config.h"
#include "runtime/weights/quantized/method.h"

namespace trireme::weights {

// InvalidArgument for settings of other layouts.
absl::StatusOr<std::unique_ptr<Method>> BitsAndBytesMethod(const JsonConfig& config);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_BITSANDBYTES_H_
