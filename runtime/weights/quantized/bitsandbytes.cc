#include "runtime/weights/quantized/bitsandbytes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/formats/weight_group.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/gguf_cursor.h"
#include "runtime/weights/quantized/float_parts.h"

namespace trireme::weights {
namespace {

constexpr int64_t kStateBytesMax = 4096;
constexpr int64_t kBlockSizeMax = int64_t{1} << 20;

// The JSON object beside the codes.
struct QuantState {
  std::string type;  // "nf4"
  int64_t block_size = 64;
  MatrixExtents extents;
  int64_t nested_block_size = 256;
  float nested_offset = 0;
};

// Scales of blocks of the rows one after another; nested, a byte that stands for a number of
// nested_map, times a scale of its own, plus an offset.
class BlockScales final : public ScaleReader {
 public:
  struct Nested {
    StoredPart bytes;
    std::vector<float> map;
    PartNumbers scales;
    int64_t block_size;
    float offset;
  };

  BlockScales(PartNumbers scales, int64_t columns, int64_t block_size, int64_t group_columns)
      : scales_(std::move(scales)),
        columns_(columns),
        block_size_(block_size),
        group_columns_(group_columns) {}
  BlockScales(Nested nested, int64_t columns, int64_t block_size, int64_t group_columns)
      : nested_(std::move(nested)),
        columns_(columns),
        block_size_(block_size),
        group_columns_(group_columns) {}

  absl::Status Read(int64_t row, topology::Range groups, float* scales) const override {
    for (int64_t group = groups.begin; group < groups.end; ++group) {
      const int64_t block = (row * columns_ + group * group_columns_) / block_size_;
      if (scales_.has_value()) {
        ASSIGN_OR_RETURN(*scales++, scales_->At(block));
        continue;
      }
      ASSIGN_OR_RETURN(const float outer, nested_->scales.At(block / nested_->block_size));
      const float product = nested_->map[nested_->bytes.bytes[static_cast<size_t>(block)]] * outer;
      *scales++ = product + nested_->offset;
    }
    return absl::OkStatus();
  }

 private:
  const std::optional<PartNumbers> scales_;
  const std::optional<Nested> nested_;
  const int64_t columns_;
  const int64_t block_size_;
  const int64_t group_columns_;
};

absl::StatusOr<std::vector<float>> ReadMap(const ModuleTensors& module, const char* suffix,
                                           int64_t entries) {
  ASSIGN_OR_RETURN(const StoredPart part, module.Get(suffix, {"F32"}, {entries}));
  const PartNumbers numbers(module.source(), part);
  std::vector<float> map;
  for (int64_t i = 0; i < entries; ++i) {
    ASSIGN_OR_RETURN(const float number, numbers.At(i));
    map.push_back(number);
  }
  return map;
}

// The kernels' name for these numbers, if they are those of the type.
kernels::NumberKind KindOf(absl::string_view type, absl::Span<const float> map) {
  const kernels::NumberKind kind =
      type == "nf4" ? kernels::NumberKind::kNF4 : kernels::NumberKind::kFP4;
  const kernels::NumberTable known = kernels::NumbersOf(kind);
  return std::equal(map.begin(), map.end(), std::begin(known.numbers), std::end(known.numbers))
             ? kind
             : kernels::NumberKind::kInteger;
}

absl::StatusOr<QuantState> ReadState(const ModuleTensors& module, const std::string& suffix) {
  ASSIGN_OR_RETURN(const StoredPart part, module.Get(suffix, {"U8"}));
  if (part.values() > kStateBytesMax) {
    return module.Error(
        suffix, absl::StrCat("has ", part.values(), " bytes, wanted at most ", kStateBytesMax));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<JsonConfig> json,
                   JsonConfig::Parse(part.name, std::string(part.bytes.begin(), part.bytes.end())));
  QuantState state;
  ASSIGN_OR_RETURN(state.type, json->String("quant_type"));
  ASSIGN_OR_RETURN(state.block_size, json->Integer("blocksize"));
  ASSIGN_OR_RETURN(state.nested_block_size, json->IntegerOr("nested_blocksize", 256));
  for (const int64_t size : {state.block_size, state.nested_block_size}) {
    if (size < 1 || size > kBlockSizeMax) {
      return module.Error(
          suffix, absl::StrCat("has a blocksize of ", size, ", wanted 1 to ", kBlockSizeMax));
    }
  }
  if (json->Has("nested_offset")) {
    ASSIGN_OR_RETURN(const double offset, json->Float("nested_offset"));
    state.nested_offset = static_cast<float>(offset);
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> shape, json->Integers("shape"));
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1) {
    return module.Error(suffix, absl::StrCat("has the shape [", absl::StrJoin(shape, ", "),
                                             "], wanted two numbers from 1"));
  }
  state.extents = {.rows = shape[0], .columns = shape[1]};
  return state;
}

absl::Status AddBlockScales(const ModuleTensors& module, const QuantState& state,
                            QuantizedParts* parts) {
  const MatrixExtents& matrix = parts->extents;
  const int64_t blocks = (matrix.rows * matrix.columns + state.block_size - 1) / state.block_size;
  // A block may go over the end of a row; a group does not.
  parts->group_columns = std::gcd(matrix.columns, state.block_size);
  parts->groups = matrix.columns / parts->group_columns;
  ASSIGN_OR_RETURN(const StoredPart scales, module.Get("weight.absmax", {"F32", "U8"}, {blocks}));
  parts->Add(scales);
  if (scales.dtype == "F32") {
    parts->scales =
        std::make_unique<BlockScales>(PartNumbers(module.source(), scales), matrix.columns,
                                      state.block_size, parts->group_columns);
    return absl::OkStatus();
  }
  const int64_t outer_blocks = (blocks + state.nested_block_size - 1) / state.nested_block_size;
  ASSIGN_OR_RETURN(const StoredPart outer,
                   module.Get("weight.nested_absmax", {"F32"}, {outer_blocks}));
  ASSIGN_OR_RETURN(std::vector<float> map, ReadMap(module, "weight.nested_quant_map", 256));
  if (!std::isfinite(state.nested_offset)) {
    return module.Error("weight.absmax", "has a nested_offset that is no finite number");
  }
  parts->Add(outer);
  parts->Add(*module.Find("weight.nested_quant_map"));
  parts->scales = std::make_unique<BlockScales>(
      BlockScales::Nested{.bytes = scales,
                          .map = std::move(map),
                          .scales = PartNumbers(module.source(), outer),
                          .block_size = state.nested_block_size,
                          .offset = state.nested_offset},
      matrix.columns, state.block_size, parts->group_columns);
  return absl::OkStatus();
}

absl::StatusOr<MaybeMatrix> ReadFourBits(const ModuleTensors& module, const std::string& type,
                                         const std::optional<MatrixExtents>& wanted) {
  const std::string state_suffix = absl::StrCat("weight.quant_state.bitsandbytes__", type);
  ASSIGN_OR_RETURN(const QuantState state, ReadState(module, state_suffix));
  if (state.type != type) {
    return module.Error(state_suffix, absl::StrCat("has the quant_type ", PrintableName(state.type),
                                                   ", wanted ", type));
  }
  QuantizedParts parts;
  parts.source = &module.source();
  parts.scheme = absl::StrCat("bitsandbytes, ", type, ", blocks of ", state.block_size);
  parts.extents = state.extents;
  RETURN_IF_ERROR(module.CheckMatrix(state_suffix, parts.extents, wanted));
  // Bytes, or the same bytes under a wider type.
  ASSIGN_OR_RETURN(const StoredPart codes, module.Get("weight", {"U8", "BF16", "F16", "F32"}));
  const auto code_bytes = static_cast<int64_t>(codes.bytes.size());
  const bool fits = parts.extents.rows <= 2 * code_bytes / parts.extents.columns;
  if (!fits || code_bytes != (parts.extents.rows * parts.extents.columns + 1) / 2) {
    return module.Error("weight", absl::StrCat("has ", code_bytes, " bytes; the shape [",
                                               parts.extents.rows, ", ", parts.extents.columns,
                                               "] of ", state_suffix, " needs half of its values"));
  }
  parts.Add(codes);
  ASSIGN_OR_RETURN(const std::vector<float> map, ReadMap(module, "weight.quant_map", 16));
  parts.Add(*module.Find("weight.quant_map"));
  parts.Add(*module.Find(state_suffix));
  parts.meaning = CodeMeaning::kTable;
  std::copy(map.begin(), map.end(), parts.numbers.begin());
  parts.kind = KindOf(type, map);
  parts.codes =
      std::make_unique<NibbleCodes>(codes.bytes, parts.extents.columns, /*is_high_first=*/true);
  RETURN_IF_ERROR(AddBlockScales(module, state, &parts));
  return std::make_shared<QuantizedMatrix>(std::move(parts));
}

absl::StatusOr<MaybeMatrix> ReadEightBits(const ModuleTensors& module,
                                          const std::optional<MatrixExtents>& wanted) {
  ASSIGN_OR_RETURN(const StoredPart codes, module.Get("weight", {"I8"}));
  if (codes.extents.size() != 2) {
    return module.Error("weight", "is no matrix");
  }
  QuantizedParts parts;
  parts.source = &module.source();
  parts.scheme = "bitsandbytes, int8";
  parts.extents = {.rows = codes.extents[0], .columns = codes.extents[1]};
  RETURN_IF_ERROR(module.CheckMatrix("weight", parts.extents, wanted));
  ASSIGN_OR_RETURN(const StoredPart scales, module.Get("SCB", {"F32"}));
  parts.Add(codes);
  parts.meaning = CodeMeaning::kSignedByte;
  parts.codes = std::make_unique<ByteCodes>(codes.bytes, parts.extents.columns, /*is_signed=*/true);
  RETURN_IF_ERROR(AddScales(module, scales, {.layout = ScaleLayout::kChannel}, &parts));
  if (module.Has("weight_format")) {
    ASSIGN_OR_RETURN(const StoredPart format, module.Get("weight_format", {"U8"}));
    if (format.values() != 1 || format.bytes[0] != 0) {
      return module.Error("weight_format",
                          absl::StrCat("is ", format.values() == 1 ? format.bytes[0] : -1,
                                       ", a tiled layout; wanted 0, rows"));
    }
    parts.Add(format);
  }
  return std::make_shared<QuantizedMatrix>(std::move(parts));
}

class BitsAndBytes final : public Method {
 public:
  explicit BitsAndBytes(std::string type) : type_(std::move(type)) {}

  absl::StatusOr<MaybeMatrix> Read(const ModuleTensors& module,
                                   const std::optional<MatrixExtents>& wanted) const override {
    for (const char* type : {"nf4", "fp4"}) {
      if (module.Has(absl::StrCat("weight.quant_state.bitsandbytes__", type))) {
        return ReadFourBits(module, type, wanted);
      }
    }
    const std::optional<StoredPart> codes = module.Find("weight");
    const std::string dtype = codes.has_value() ? codes->dtype : "";
    if (dtype == "U8" || module.Has("weight.absmax")) {
      return ReadFourBits(module, type_, wanted);  // whose error names the state that is missing
    }
    return dtype == "I8" || module.Has("SCB") ? ReadEightBits(module, wanted) : nullptr;
  }

 private:
  const std::string type_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Method>> BitsAndBytesMethod(const JsonConfig& config) {
  ASSIGN_OR_RETURN(std::string type, config.StringOr("bnb_4bit_quant_type", "nf4"));
  if (type != "nf4" && type != "fp4") {
    return config.Error("bnb_4bit_quant_type",
                        absl::StrCat("is ", PrintableName(type), ", wanted nf4 or fp4"));
  }
  return std::make_unique<BitsAndBytes>(std::move(type));
}

}  // namespace trireme::weights
