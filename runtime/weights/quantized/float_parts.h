// Matrices of FP8 and FP4 numbers, which several methods store under different names.
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_FLOAT_PARTS_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_FLOAT_PARTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/weights/quantized/method.h"
#include "runtime/weights/quantized/module_tensors.h"
#include "runtime/weights/quantized/scale_reader.h"

namespace trireme::weights {

enum class ScaleLayout : uint8_t {
  kTensor,   // one number, of any extents
  kChannel,  // [rows] or [rows, 1]
  kBlock,    // [ceil(rows / block_rows), ceil(columns / block_columns)]
};

struct ScaleShape {
  ScaleLayout layout = ScaleLayout::kTensor;
  int64_t block_rows = 1;
  int64_t block_columns = 1;
};

// Fills groups, group_columns and scales from a part whose extents it checks.
absl::Status AddScales(const ModuleTensors& module, const StoredPart& scales,
                       const ScaleShape& shape, QuantizedParts* parts);

// The number of a part that must have one; not 0 where it `divides`. InvalidArgument names it.
absl::StatusOr<float> OneNumber(const ModuleTensors& module, const StoredPart& part, bool divides);

struct Float8Layout {
  std::string scheme;
  std::string scale_suffix;
  ScaleShape scales;
  bool divides = false;        // by the scale
  bool has_exponents = false;  // scales of type U8 are E8M0 exponents; else they are refused
};

// `weight` F8_E4M3 or F8_E5M2 [rows, columns] with scales.
absl::StatusOr<MaybeMatrix> ReadFloat8(const ModuleTensors& module, const Float8Layout& layout,
                                       const std::optional<MatrixExtents>& wanted);

struct Float4Layout {
  std::string scheme;
  std::string codes_suffix;         // U8 [rows, columns / 2], even column in the low nibble
  std::string tensor_scale_suffix;  // F32, one number; empty: MXFP4
  TensorScale operation = TensorScale::kMultiplies;
};

// E2M1 numbers with `weight_scale`: F8_E4M3 for each 16 columns, with a scale of the tensor; or an
// exponent for each 32, without one.
absl::StatusOr<MaybeMatrix> ReadFloat4(const ModuleTensors& module, const Float4Layout& layout,
                                       const std::optional<MatrixExtents>& wanted);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_FLOAT_PARTS_H_
