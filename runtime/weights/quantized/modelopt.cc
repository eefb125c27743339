#include "runtime/weights/quantized/modelopt.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/gguf_cursor.h"
#include "runtime/weights/quantized/float_parts.h"

namespace trireme::weights {
namespace {

class ModelOpt final : public Method {
 public:
  explicit ModelOpt(bool has_fp4) : has_fp4_(has_fp4) {}

  absl::StatusOr<MaybeMatrix> Read(const ModuleTensors& module,
                                   const std::optional<MatrixExtents>& wanted) const override {
    const std::optional<StoredPart> codes = module.Find("weight");
    const char* const dtype = has_fp4_ ? "U8" : "F8_E4M3";
    if (!codes.has_value() || codes->dtype != dtype) {
      return nullptr;
    }
    return has_fp4_
               ? ReadFloat4(module,
                            {.scheme = "modelopt, nvfp4",
                             .codes_suffix = "weight",
                             .tensor_scale_suffix = "weight_scale_2"},
                            wanted)
               : ReadFloat8(module, {.scheme = "modelopt, fp8", .scale_suffix = "weight_scale"},
                            wanted);
  }

 private:
  const bool has_fp4_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Method>> ModelOptMethod(const JsonConfig& config) {
  ASSIGN_OR_RETURN(const std::string algorithm, config.String("quant_algo"));
  if (algorithm != "FP8" && algorithm != "NVFP4") {
    return config.Error("quant_algo", absl::StrCat("is ", PrintableName(algorithm),
                                                   "; of modelopt this build reads FP8 and NVFP4"));
  }
  return std::make_unique<ModelOpt>(/*has_fp4=*/algorithm == "NVFP4");
}

}  // namespace trireme::weights
