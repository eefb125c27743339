#include "runtime/weights/quantized/awq.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/gguf_cursor.h"
#include "runtime/weights/quantized/groups.h"

namespace trireme::weights {
namespace {

constexpr int kBits = 4;
constexpr int64_t kCodesPerWord = 8;

class Awq final : public Method {
 public:
  explicit Awq(int64_t group_size) : group_size_(group_size) {}

  absl::StatusOr<MaybeMatrix> Read(const ModuleTensors& module,
                                   const std::optional<MatrixExtents>& wanted) const override {
    if (!module.Has("qweight")) {
      return nullptr;
    }
    RETURN_IF_ERROR(module.CheckNoPlainWeight("qweight"));
    ASSIGN_OR_RETURN(const StoredPart codes, module.Get("qweight", {"I32"}));
    if (codes.extents.size() != 2) {
      return module.Error("qweight", "is no matrix");
    }
    const int64_t words = codes.extents[1];
    QuantizedParts parts;
    parts.source = &module.source();
    parts.extents = {.rows = words * kCodesPerWord, .columns = codes.extents[0]};
    RETURN_IF_ERROR(module.CheckMatrix("qweight", parts.extents, wanted));
    ASSIGN_OR_RETURN(parts.groups, GroupsOf(module, parts.extents.columns, group_size_));
    parts.group_columns = parts.extents.columns / parts.groups;
    ASSIGN_OR_RETURN(const StoredPart zeros, module.Get("qzeros", {"I32"}, {parts.groups, words}));
    ASSIGN_OR_RETURN(const StoredPart scales, module.Get("scales", {"F16", "BF16", "F32"},
                                                         {parts.groups, parts.extents.rows}));
    for (const StoredPart& part : {codes, zeros, scales}) {
      parts.Add(part);
    }
    parts.code_bits = kBits;
    parts.scheme = absl::StrCat("awq, 4 bits, ", GroupText(parts.group_columns));
    const WordPacking packing{
        .bits = kBits, .is_along_columns = false, .is_interleaved = true, .run_stride = words};
    parts.codes = std::make_unique<WordCodes>(codes.bytes, packing);
    parts.zero_points = std::make_unique<WordCodes>(zeros.bytes, packing);
    parts.scales = std::make_unique<GridScales>(PartNumbers(module.source(), scales),
                                                GridStrides{.group_stride = parts.extents.rows});
    return std::make_shared<QuantizedMatrix>(std::move(parts));
  }

 private:
  const int64_t group_size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Method>> AwqMethod(const JsonConfig& config) {
  // The first exports wrote w_bit and q_group_size.
  const char* const bits_key = config.Has("w_bit") ? "w_bit" : "bits";
  ASSIGN_OR_RETURN(const int64_t bits, config.IntegerOr(bits_key, kBits));
  if (bits != kBits) {
    return config.Error(bits_key, absl::StrCat("is ", bits, "; awq is read with 4"));
  }
  const char* const group_key = config.Has("q_group_size") ? "q_group_size" : "group_size";
  ASSIGN_OR_RETURN(const int64_t group_size, config.IntegerOr(group_key, 128));
  RETURN_IF_ERROR(CheckGroupSize(config, group_key, group_size));
  for (const char* key : {"version", "checkpoint_format", "format"}) {
    ASSIGN_OR_RETURN(const std::string version, config.StringOr(key, "gemm"));
    if (absl::AsciiStrToLower(version) != "gemm") {
      return config.Error(
          key, absl::StrCat("is ", PrintableName(version),
                            "; of awq this build reads gemm, whose codes lie in another order"));
    }
  }
  ASSIGN_OR_RETURN(const bool has_zero_points, config.BoolOr("zero_point", true));
  if (!has_zero_points) {
    return config.Error("zero_point", "is false; awq is read with zero points");
  }
  return std::make_unique<Awq>(group_size);
}

}  // namespace trireme::weights
