#include "runtime/weights/quantized/mxfp4.h"

#include <memory>
#include <utility>

#include "runtime/base/status_macros.h"

namespace trireme::weights {
namespace {

constexpr int64_t kGroupColumns = 32;
constexpr int64_t kGroupBytes = 16;

class Mxfp4 final : public Method {
 public:
  absl::StatusOr<MaybeMatrix> Read(const ModuleTensors& module,
                                   const std::optional<MatrixExtents>& wanted) const override {
    if (!module.Has("_blocks")) {
      return nullptr;
    }
    ASSIGN_OR_RETURN(const StoredPart codes, module.Get("_blocks", {"U8"}));
    std::vector<int64_t> grid = codes.extents;  // [experts, rows, groups, bytes]
    if (grid.size() != 4 || grid.back() != kGroupBytes) {
      return module.Error("_blocks", "has no extents [experts, rows, groups, 16]");
    }
    grid.pop_back();
    QuantizedParts parts;
    parts.source = &module.source();
    parts.extents = {.rows = grid[0] * grid[1], .columns = grid[2] * kGroupColumns};
    RETURN_IF_ERROR(module.CheckMatrix("_blocks", parts.extents, wanted));
    ASSIGN_OR_RETURN(const StoredPart scales, module.Get("_scales", {"U8", "F8_E8M0"}, grid));
    parts.Add(codes);
    parts.Add(scales);
    parts.scheme = "mxfp4";
    parts.groups = grid[2];
    parts.group_columns = kGroupColumns;
    parts.meaning = CodeMeaning::kTable;
    parts.numbers = E2M1Numbers();
    parts.kind = kernels::NumberKind::kE2M1;
    parts.codes = std::make_unique<NibbleCodes>(codes.bytes, parts.extents.columns,
                                                /*is_high_first=*/false);
    parts.scales = std::make_unique<GridScales>(PartNumbers(module.source(), scales),
                                                GridStrides{.row_stride = parts.groups});
    return std::make_shared<QuantizedMatrix>(std::move(parts));
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Method>> Mxfp4Method(const JsonConfig& /*config*/) {
  return std::make_unique<Mxfp4>();
}

}  // namespace trireme::weights
