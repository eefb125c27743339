#include "runtime/weights/quantized/float_parts.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace trireme::weights {
namespace {

constexpr int64_t kNvfp4GroupColumns = 16;
constexpr int64_t kMxfp4GroupColumns = 32;

int64_t Blocks(int64_t extent, int64_t block) { return (extent + block - 1) / block; }

std::string LayoutText(const ScaleShape& shape) {
  switch (shape.layout) {
    case ScaleLayout::kTensor:
      return "one scale";
    case ScaleLayout::kChannel:
      return "a scale a row";
    case ScaleLayout::kBlock:
      return absl::StrCat("blocks of ", shape.block_rows, " x ", shape.block_columns);
  }
  return "";
}

}  // namespace

absl::Status AddScales(const ModuleTensors& module, const StoredPart& scales,
                       const ScaleShape& shape, QuantizedParts* parts) {
  const MatrixExtents& matrix = parts->extents;
  GridStrides strides;
  parts->groups = 1;
  parts->group_columns = matrix.columns;
  switch (shape.layout) {
    case ScaleLayout::kTensor:
      if (scales.values() != 1) {
        RETURN_IF_ERROR(module.CheckExtents(scales, {1}));
      }
      strides = {.row_stride = 0, .group_stride = 0};
      break;
    case ScaleLayout::kChannel:
      if (scales.extents != std::vector<int64_t>{matrix.rows}) {
        RETURN_IF_ERROR(module.CheckExtents(scales, {matrix.rows, 1}));
      }
      break;
    case ScaleLayout::kBlock:
      parts->groups = Blocks(matrix.columns, shape.block_columns);
      parts->group_columns = shape.block_columns;
      RETURN_IF_ERROR(
          module.CheckExtents(scales, {Blocks(matrix.rows, shape.block_rows), parts->groups}));
      strides = {.row_block = shape.block_rows, .row_stride = parts->groups};
      break;
  }
  parts->Add(scales);
  parts->scales = std::make_unique<GridScales>(PartNumbers(module.source(), scales), strides);
  return absl::OkStatus();
}

absl::StatusOr<float> OneNumber(const ModuleTensors& module, const StoredPart& part, bool divides) {
  if (part.values() != 1) {
    RETURN_IF_ERROR(module.CheckExtents(part, {1}));
  }
  ASSIGN_OR_RETURN(const float number, PartNumbers(module.source(), part).At(0));
  if (divides && number == 0) {
    return module.source().PartError(part.name, "is 0, and the weights are divided by it");
  }
  return number;
}

absl::StatusOr<MaybeMatrix> ReadFloat8(const ModuleTensors& module, const Float8Layout& layout,
                                       const std::optional<MatrixExtents>& wanted) {
  ASSIGN_OR_RETURN(const StoredPart codes, module.Get("weight", {"F8_E4M3", "F8_E5M2"}));
  if (codes.extents.size() != 2) {
    return module.Error("weight", "is no matrix");
  }
  const bool is_e4m3 = codes.dtype == "F8_E4M3";
  QuantizedParts parts;
  parts.source = &module.source();
  parts.scheme =
      absl::StrCat(layout.scheme, is_e4m3 ? " e4m3, " : " e5m2, ", LayoutText(layout.scales));
  parts.extents = {.rows = codes.extents[0], .columns = codes.extents[1]};
  RETURN_IF_ERROR(module.CheckMatrix("weight", parts.extents, wanted));
  ASSIGN_OR_RETURN(const StoredPart scales,
                   layout.has_exponents
                       ? module.Get(layout.scale_suffix, {"U8", "F8_E8M0", "F32", "BF16", "F16"})
                       : module.Get(layout.scale_suffix, {"F32", "BF16", "F16", "F8_E8M0"}));
  parts.Add(codes);
  parts.meaning = layout.divides ? CodeMeaning::kTableDivided : CodeMeaning::kTable;
  parts.numbers = is_e4m3 ? E4M3Numbers() : E5M2Numbers();
  parts.kind = is_e4m3 ? kernels::NumberKind::kE4M3 : kernels::NumberKind::kE5M2;
  parts.codes =
      std::make_unique<ByteCodes>(codes.bytes, parts.extents.columns, /*is_signed=*/false);
  RETURN_IF_ERROR(AddScales(module, scales, layout.scales, &parts));
  return std::make_shared<QuantizedMatrix>(std::move(parts));
}

absl::StatusOr<MaybeMatrix> ReadFloat4(const ModuleTensors& module, const Float4Layout& layout,
                                       const std::optional<MatrixExtents>& wanted) {
  ASSIGN_OR_RETURN(const StoredPart codes, module.Get(layout.codes_suffix, {"U8"}));
  if (codes.extents.size() != 2) {
    return module.Error(layout.codes_suffix, "is no matrix");
  }
  const bool has_tensor_scale = !layout.tensor_scale_suffix.empty();
  const int64_t group_columns = has_tensor_scale ? kNvfp4GroupColumns : kMxfp4GroupColumns;
  QuantizedParts parts;
  parts.source = &module.source();
  parts.scheme = layout.scheme;
  parts.extents = {.rows = codes.extents[0], .columns = 2 * codes.extents[1]};
  RETURN_IF_ERROR(module.CheckMatrix(layout.codes_suffix, parts.extents, wanted));
  if (parts.extents.columns % group_columns != 0) {
    return module.Error(layout.codes_suffix,
                        absl::StrCat("has ", parts.extents.columns, " inputs, which groups of ",
                                     group_columns, " do not divide"));
  }
  ASSIGN_OR_RETURN(const StoredPart scales, has_tensor_scale
                                                ? module.Get("weight_scale", {"F8_E4M3"})
                                                : module.Get("weight_scale", {"U8", "F8_E8M0"}));
  parts.Add(codes);
  parts.meaning = CodeMeaning::kTable;
  parts.numbers = E2M1Numbers();
  parts.kind = kernels::NumberKind::kE2M1;
  parts.codes = std::make_unique<NibbleCodes>(codes.bytes, parts.extents.columns,
                                              /*is_high_first=*/false);
  RETURN_IF_ERROR(AddScales(
      module, scales, {.layout = ScaleLayout::kBlock, .block_columns = group_columns}, &parts));
  if (has_tensor_scale) {
    ASSIGN_OR_RETURN(const StoredPart part, module.Get(layout.tensor_scale_suffix, {"F32"}));
    const bool divides = layout.operation == TensorScale::kDivides;
    ASSIGN_OR_RETURN(const float tensor_scale, OneNumber(module, part, divides));
    parts.Add(part);
    parts.scales =
        std::make_unique<TwoLevelScales>(std::move(parts.scales), tensor_scale, layout.operation);
  }
  return std::make_shared<QuantizedMatrix>(std::move(parts));
}

}  // namespace trireme::weights
