// Reads the scales of a matrix's groups: runs of columns of one row that share a scale. Every scale
// is checked to be a finite number when it is read.
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_SCALE_READER_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_SCALE_READER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/weights/quantized/module_tensors.h"
#include "topology/partition.h"

namespace trireme::weights {

// What the type of stored scales says of all of them.
enum class ScaleRange : uint8_t { kAny, kHalves, kExponents };

class TwoLevelScales;

// Immutable; threads may read it at any time. The part's bytes outlive it.
class ScaleReader {
 public:
  virtual ~ScaleReader() = default;

  virtual ScaleRange range() const { return ScaleRange::kAny; }

  // The scales that a second one of the whole matrix turns into these; null where there is none.
  virtual const TwoLevelScales* two_levels() const { return nullptr; }

  // Of one row's groups into scales [groups]. InvalidArgument names the tensor of a scale that is
  // no finite number.
  virtual absl::Status Read(int64_t row, topology::Range groups, float* scales) const = 0;
};

// The numbers of a part of type F32, F16, BF16, F8_E4M3, F8_E8M0, or U8 as E8M0 exponents.
class PartNumbers {
 public:
  PartNumbers(const PartSource& source, StoredPart part);

  ScaleRange range() const;
  absl::StatusOr<float> At(int64_t index) const;

 private:
  enum class Kind : uint8_t { kFloat32, kFloat16, kBFloat16, kE4M3, kExponent };
  Kind kind_;
  const PartSource& source_;
  const StoredPart part_;
};

// A grid of scales: that of (row, group) is number row / row_block * row_stride + group *
// group_stride.
struct GridStrides {
  int64_t row_block = 1;
  int64_t row_stride = 1;
  int64_t group_stride = 1;
};

class GridScales final : public ScaleReader {
 public:
  GridScales(PartNumbers numbers, const GridStrides& strides)
      : numbers_(std::move(numbers)), strides_(strides) {}

  ScaleRange range() const override { return numbers_.range(); }
  absl::Status Read(int64_t row, topology::Range groups, float* scales) const override;

 private:
  const PartNumbers numbers_;
  const GridStrides strides_;
};

// Scales with a second one for the whole matrix, which multiplies or divides them first.
enum class TensorScale : uint8_t { kMultiplies, kDivides };

class TwoLevelScales final : public ScaleReader {
 public:
  // `tensor_scale` is finite, and not 0 where it divides.
  TwoLevelScales(std::unique_ptr<ScaleReader> scales, float tensor_scale, TensorScale operation)
      : scales_(std::move(scales)), tensor_scale_(tensor_scale), operation_(operation) {}

  const TwoLevelScales* two_levels() const override { return this; }
  const ScaleReader& first() const { return *scales_; }
  float tensor_scale() const { return tensor_scale_; }
  TensorScale operation() const { return operation_; }

  absl::Status Read(int64_t row, topology::Range groups, float* scales) const override;

 private:
  const std::unique_ptr<ScaleReader> scales_;
  const float tensor_scale_;
  const TensorScale operation_;
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_SCALE_READER_H_
