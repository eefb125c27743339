#include "runtime/weights/quantized/fp8.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/gguf_cursor.h"
#include "runtime/weights/quantized/float_parts.h"

namespace trireme::weights {
namespace {

class Fp8 final : public Method {
 public:
  explicit Fp8(Float8Layout layout) : layout_(std::move(layout)) {}

  absl::StatusOr<MaybeMatrix> Read(const ModuleTensors& module,
                                   const std::optional<MatrixExtents>& wanted) const override {
    const std::optional<StoredPart> codes = module.Find("weight");
    if (!codes.has_value() || !(codes->dtype == "F8_E4M3" || codes->dtype == "F8_E5M2")) {
      return nullptr;
    }
    Float8Layout layout = layout_;
    // Tools differ in the name, not in the meaning.
    if (!layout.divides && !module.Has(layout.scale_suffix) && module.Has("weight_scale")) {
      layout.scale_suffix = "weight_scale";
    }
    return ReadFloat8(module, layout, wanted);
  }

 private:
  const Float8Layout layout_;
};

absl::StatusOr<ScaleShape> ReadScaleShape(const JsonConfig& config) {
  ScaleShape shape;
  if (config.Has("weight_block_size")) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> block, config.Integers("weight_block_size"));
    if (block.size() != 2 || block[0] < 1 || block[1] < 1) {
      return config.Error("weight_block_size",
                          "is no list of two numbers from 1, rows and columns");
    }
    shape = {.layout = ScaleLayout::kBlock, .block_rows = block[0], .block_columns = block[1]};
  }
  ASSIGN_OR_RETURN(const std::string method,
                   config.StringOr("weight_scale_method",
                                   shape.layout == ScaleLayout::kBlock ? "block" : "tensor"));
  if (method == "row") {
    shape.layout = ScaleLayout::kChannel;
  } else if (method == "tensor") {
    shape.layout = ScaleLayout::kTensor;
  } else if (method != "block" || shape.layout != ScaleLayout::kBlock) {
    return config.Error("weight_scale_method",
                        absl::StrCat("is ", PrintableName(method),
                                     ", wanted tensor, row, or block with weight_block_size"));
  }
  return shape;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Method>> Fp8Method(const JsonConfig& config) {
  Float8Layout layout{.scheme = "fp8", .scale_suffix = "weight_scale_inv"};
  ASSIGN_OR_RETURN(layout.scales, ReadScaleShape(config));
  ASSIGN_OR_RETURN(const std::string exponents, config.StringOr("scale_fmt", "float"));
  if (exponents != "ue8m0" && exponents != "float") {
    return config.Error("scale_fmt",
                        absl::StrCat("is ", PrintableName(exponents), ", wanted ue8m0 or none"));
  }
  layout.has_exponents = exponents == "ue8m0";
  // GPTQModel stores the true inverse under the name that others use for the scale.
  ASSIGN_OR_RETURN(const std::string semantics, config.StringOr("weight_scale_semantics", "scale"));
  if (semantics != "inverse" && semantics != "scale") {
    return config.Error("weight_scale_semantics",
                        absl::StrCat("is ", PrintableName(semantics), ", wanted inverse or none"));
  }
  layout.divides = semantics == "inverse";
  for (const char* key : {"fmt", "format", "checkpoint_format"}) {
    ASSIGN_OR_RETURN(const std::string format, config.StringOr(key, "e4m3"));
    if (!absl::StrContains(format, "e4m3") && !absl::StrContains(format, "e5m2")) {
      return config.Error(key, absl::StrCat("is ", PrintableName(format), ", wanted e4m3 or e5m2"));
    }
    if (absl::StrContains(format, "fnuz")) {
      return config.Error(key, absl::StrCat("is ", PrintableName(format),
                                            ", numbers of another bias; wanted e4m3 or e5m2"));
    }
  }
  return std::make_unique<Fp8>(std::move(layout));
}

}  // namespace trireme::weights
