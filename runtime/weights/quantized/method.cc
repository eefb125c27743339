#include "runtime/weights/quantized/method.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/gguf_cursor.h"
#include "runtime/weights/quantized/awq.h"
#include "runtime/weights/quantized/bitnet.h"
#include "runtime/weights/quantized/bitsandbytes.h"
#include "runtime/weights/quantized/compressed_tensors.h"
#include "runtime/weights/quantized/fp8.h"
#include "runtime/weights/quantized/gptq.h"
#include "runtime/weights/quantized/modelopt.h"
#include "runtime/weights/quantized/mxfp4.h"

namespace trireme::weights {
namespace {

using MethodFunction = absl::StatusOr<std::unique_ptr<Method>> (*)(const JsonConfig& config);

// AutoRound stores the tensors of one of two other methods.
absl::StatusOr<std::unique_ptr<Method>> AutoRoundMethod(const JsonConfig& config) {
  ASSIGN_OR_RETURN(const std::string format, config.String("packing_format"));
  if (format == "auto_round:auto_gptq") {
    return GptqMethod(config);
  }
  if (format == "auto_round:auto_awq") {
    return AwqMethod(config);
  }
  return config.Error("packing_format",
                      absl::StrCat("is ", PrintableName(format),
                                   ", wanted auto_round:auto_gptq or auto_round:auto_awq"));
}

struct MethodName {
  const char* name;
  MethodFunction function;
};
constexpr MethodName kMethods[] = {
    {"gptq", GptqMethod},
    {"awq", AwqMethod},
    {"auto-round", AutoRoundMethod},
    {"bitsandbytes", BitsAndBytesMethod},
    {"fp8", Fp8Method},
    {"compressed-tensors", CompressedTensorsMethod},
    {"modelopt", ModelOptMethod},
    {"mxfp4", Mxfp4Method},
    {"bitnet", BitNetMethod},
};

// Of tools that wrote no quant_method.
std::string GuessedMethod(const JsonConfig& config) {
  if (config.Has("quant_algo")) {
    return "modelopt";
  }
  if (config.Has("load_in_4bit") || config.Has("load_in_8bit")) {
    return "bitsandbytes";
  }
  if (config.Has("w_bit") || config.Has("zero_point")) {
    return "awq";
  }
  return config.Has("bits") && config.Has("desc_act") ? "gptq" : "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<JsonConfig>> FindQuantizationConfig(const std::string& directory,
                                                                   const JsonConfig& config) {
  for (const char* key : {"quantization_config", "text_config.quantization_config"}) {
    if (!config.Has(key)) {
      continue;
    }
    std::unique_ptr<JsonConfig> found = config.Object(key);
    return found != nullptr
               ? absl::StatusOr<std::unique_ptr<JsonConfig>>(std::move(found))
               : config.Error(key, "is no object; wanted one with quant_method and its settings");
  }
  for (const char* name : {"quantize_config.json", "quant_config.json", "hf_quant_config.json"}) {
    const std::string path = absl::StrCat(directory, "/", name);
    if (::access(path.c_str(), F_OK) == 0) {
      ASSIGN_OR_RETURN(std::unique_ptr<JsonConfig> file, JsonConfig::Read(path));
      std::unique_ptr<JsonConfig> inner = file->Object("quantization");
      return inner != nullptr ? std::move(inner) : std::move(file);
    }
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Method>> MethodOf(const JsonConfig& config) {
  ASSIGN_OR_RETURN(const std::string name, config.StringOr("quant_method", GuessedMethod(config)));
  std::vector<std::string> known;
  for (const MethodName& method : kMethods) {
    if (name == method.name) {
      return method.function(config);
    }
    known.emplace_back(method.name);
  }
  return config.Error(
      "quant_method",
      absl::StrCat("is ", name.empty() ? "missing" : PrintableName(name), "; this build reads ",
                   absl::StrJoin(known, ", "),
                   ": take a checkpoint of one of these, the plain one, or a GGUF file"));
}

}  // namespace trireme::weights
