#include "runtime/weights/quantized/bitnet.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/gguf_cursor.h"
#include "runtime/weights/quantized/float_parts.h"

namespace trireme::weights {
namespace {

constexpr int64_t kRowsPerByte = 4;

class BitNet final : public Method {
 public:
  explicit BitNet(bool divides) : divides_(divides) {}

  absl::StatusOr<MaybeMatrix> Read(const ModuleTensors& module,
                                   const std::optional<MatrixExtents>& wanted) const override {
    const std::optional<StoredPart> weight = module.Find("weight");
    if (!weight.has_value() || weight->dtype != "U8") {
      return nullptr;
    }
    ASSIGN_OR_RETURN(const StoredPart codes, module.Get("weight", {"U8"}));
    if (codes.extents.size() != 2) {
      return module.Error("weight", "is no matrix");
    }
    QuantizedParts parts;
    parts.source = &module.source();
    parts.extents = {.rows = codes.extents[0] * kRowsPerByte, .columns = codes.extents[1]};
    RETURN_IF_ERROR(module.CheckMatrix("weight", parts.extents, wanted));
    ASSIGN_OR_RETURN(const StoredPart scale, module.Get("weight_scale", {"BF16", "F16", "F32"}));
    RETURN_IF_ERROR(OneNumber(module, scale, divides_).status());
    parts.Add(codes);
    parts.Add(scale);
    parts.scheme = "bitnet, ternary";
    parts.meaning = divides_ ? CodeMeaning::kTableDivided : CodeMeaning::kTable;
    parts.numbers = TernaryNumbers();
    parts.code_bits = 2;
    parts.codes =
        std::make_unique<SlabCodes>(codes.bytes, parts.extents.rows, parts.extents.columns);
    RETURN_IF_ERROR(AddScales(module, scale, {.layout = ScaleLayout::kTensor}, &parts));
    return std::make_shared<QuantizedMatrix>(std::move(parts));
  }

 private:
  const bool divides_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Method>> BitNetMethod(const JsonConfig& config) {
  ASSIGN_OR_RETURN(const std::string layer, config.StringOr("linear_class", "bitlinear"));
  if (layer != "bitlinear" && layer != "autobitlinear") {
    return config.Error("linear_class", absl::StrCat("is ", PrintableName(layer),
                                                     ", wanted bitlinear or autobitlinear"));
  }
  ASSIGN_OR_RETURN(const std::string mode, config.StringOr("quantization_mode", "offline"));
  if (mode != "offline") {
    return config.Error("quantization_mode",
                        absl::StrCat("is ", PrintableName(mode),
                                     ": master weights, to be rounded while loading; this build "
                                     "reads packed ones (offline)"));
  }
  ASSIGN_OR_RETURN(const bool has_norms, config.BoolOr("use_rms_norm", false));
  if (has_norms) {
    return config.Error(
        "use_rms_norm",
        "is true: a norm before each packed matrix, which this build does not have");
  }
  return std::make_unique<BitNet>(/*divides=*/layer == "bitlinear");
}

}  // namespace trireme::weights
