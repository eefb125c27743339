#include "runtime/weights/quantized/scale_reader.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "kernels/scalar_types.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/gguf_cursor.h"

namespace trireme::weights {
namespace {

constexpr uint8_t kExponentNaN = 255;

}  // namespace

PartNumbers::PartNumbers(const PartSource& source, StoredPart part)
    : source_(source), part_(std::move(part)) {
  if (part_.dtype == "F32") {
    kind_ = Kind::kFloat32;
  } else if (part_.dtype == "F16") {
    kind_ = Kind::kFloat16;
  } else if (part_.dtype == "BF16") {
    kind_ = Kind::kBFloat16;
  } else if (part_.dtype == "F8_E4M3") {
    kind_ = Kind::kE4M3;
  } else {
    CHECK(part_.dtype == "F8_E8M0" || part_.dtype == "U8");
    kind_ = Kind::kExponent;
  }
}

ScaleRange PartNumbers::range() const {
  switch (kind_) {
    case Kind::kFloat16:
    case Kind::kE4M3:
      return ScaleRange::kHalves;
    case Kind::kExponent:
      return ScaleRange::kExponents;
    case Kind::kFloat32:
    case Kind::kBFloat16:
      return ScaleRange::kAny;
  }
  return ScaleRange::kAny;
}

absl::StatusOr<float> PartNumbers::At(int64_t index) const {
  const uint8_t* const bytes = part_.bytes.data();
  float value = 0;
  switch (kind_) {
    case Kind::kFloat32:
      value = LoadUnaligned<float>(bytes + index * 4);
      break;
    case Kind::kFloat16:
      value = kernels::HalfToFloat(LoadUnaligned<uint16_t>(bytes + index * 2));
      break;
    case Kind::kBFloat16:
      value = kernels::BFloat16ToFloat(LoadUnaligned<uint16_t>(bytes + index * 2));
      break;
    case Kind::kE4M3:
      value = kernels::E4M3ToFloat(bytes[index]);
      break;
    case Kind::kExponent:
      value = bytes[index] == kExponentNaN ? std::nanf("") : 2 * kernels::HalfOfE8M0(bytes[index]);
      break;
  }
  if (!std::isfinite(value)) {
    return source_.PartError(
        part_.name, absl::StrFormat("holds %f at element %d, wanted finite numbers: the file is "
                                    "damaged, or was not written whole",
                                    value, index));
  }
  return value;
}

absl::Status GridScales::Read(int64_t row, topology::Range groups, float* scales) const {
  const int64_t first = row / strides_.row_block * strides_.row_stride;
  for (int64_t group = groups.begin; group < groups.end; ++group) {
    ASSIGN_OR_RETURN(*scales++, numbers_.At(first + group * strides_.group_stride));
  }
  return absl::OkStatus();
}

absl::Status TwoLevelScales::Read(int64_t row, topology::Range groups, float* scales) const {
  RETURN_IF_ERROR(scales_->Read(row, groups, scales));
  for (int64_t i = 0; i < groups.size(); ++i) {
    scales[i] = operation_ == TensorScale::kMultiplies ? scales[i] * tensor_scale_
                                                       : scales[i] / tensor_scale_;
  }
  return absl::OkStatus();
}

}  // namespace trireme::weights
