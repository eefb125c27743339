// A matrix of a published quantised checkpoint: codes, scales and what they mean, ready to give any
// rectangle of weights as float32, to the bit that the publisher's own tool gives. Not for the
// layouts of codes and scales (code_reader.h, scale_reader.h), nor for names and checks of tensors.
//
// weight = number(code) * scale of the group, in float32; a group is a run of columns of one row.
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_QUANTIZED_MATRIX_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_QUANTIZED_MATRIX_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/formats/weight_format.h"
#include "kernels/formats/weight_group.h"
#include "runtime/weights/quantized/code_reader.h"
#include "runtime/weights/quantized/module_tensors.h"
#include "runtime/weights/quantized/scale_reader.h"
#include "topology/partition.h"

namespace trireme::weights {

enum class CodeMeaning : uint8_t {
  kInteger,       // (code - zero point) * scale
  kTable,         // table[code] * scale
  kTableDivided,  // table[code] / scale
  kSignedByte,    // ((code - 128) * scale) * (1 / 127), each product rounded
};

// Numbers that codes stand for; NaN where a code stands for none.
using NumberTable = std::array<float, 256>;

const NumberTable& E4M3Numbers();
const NumberTable& E5M2Numbers();
const NumberTable& E2M1Numbers();
const NumberTable& TernaryNumbers();  // code - 1 below 3

// What a reader found. `source` and the mapped bytes outlive the matrix.
struct QuantizedParts {
  const PartSource* source = nullptr;
  std::string scheme;              // for people: "gptq, 4 bits, groups of 128"
  std::vector<std::string> names;  // of all tensors that the matrix is made of, the codes' first
  int64_t stored_bytes = 0;        // of those tensors
  MatrixExtents extents;
  CodeMeaning meaning = CodeMeaning::kInteger;
  int code_bits = 8;
  NumberTable numbers = {};  // of kTable and kTableDivided
  // Of kTable: what the kernels call these numbers (of E2M1 they have the doubles); kInteger where
  // they do not know them.
  kernels::NumberKind kind = kernels::NumberKind::kInteger;
  std::unique_ptr<CodeReader> codes;
  std::unique_ptr<ScaleReader> scales;
  // Of kInteger, as a matrix [rows, groups]; null: `zero_point` everywhere.
  std::unique_ptr<CodeReader> zero_points;
  int zero_point = 0;
  int64_t group_columns = 1;
  // Of each column, where groups are no runs of columns; else empty.
  std::vector<int32_t> group_of_column;
  int64_t groups = 1;  // of a row

  // Adds a tensor to names and stored_bytes.
  void Add(const StoredPart& part);
};

// Immutable; threads may read it at any time.
class QuantizedMatrix {
 public:
  explicit QuantizedMatrix(QuantizedParts parts) : parts_(std::move(parts)) {}

  const MatrixExtents& extents() const { return parts_.extents; }
  const std::string& scheme() const { return parts_.scheme; }
  const std::vector<std::string>& part_names() const { return parts_.names; }
  int64_t stored_bytes() const { return parts_.stored_bytes; }

  // Decodes rows x columns, both inside the matrix, into values [rows][columns]; zeros are
  // positive. InvalidArgument names the tensor that holds a scale or a code which is no number.
  absl::Status Decode(topology::Range rows, topology::Range columns, float* values) const;

  // The narrowest format of the kernels that holds every weight to the bit; F32 where none does.
  // Reads zero points, and scales of types that half precision may not hold; InvalidArgument names
  // a scale that is no number.
  absl::StatusOr<kernels::WeightFormat> MemoryFormat() const;

  // Writes rows x columns as storage blocks of MemoryFormat(), rows BlockBytes apart
  // (storage_blocks.h). columns.begin is a multiple of the format's storage_values. Errors: as
  // Decode's.
  absl::Status Store(kernels::WeightFormat format, topology::Range rows, topology::Range columns,
                     std::byte* blocks) const;

 private:
  // The scales and zero points of one row's groups.
  struct RowGroups {
    topology::Range groups;
    std::vector<float> scales;
    std::vector<uint8_t> zero_points;
  };

  // Whether the kernels' groups of 32 columns lie inside groups of this matrix.
  bool HasWholeGroups() const;
  bool IsTernary() const;
  absl::StatusOr<bool> AllScales(bool (*holds)(float scale)) const;
  // Of floating point numbers with scales; F32 where none holds them.
  absl::StatusOr<kernels::WeightFormat> NumbersFormat() const;
  // Of integers whose scales are halves.
  kernels::WeightFormat IntegersFormat() const;
  int64_t GroupOf(int64_t column) const;
  absl::Status CodeError(uint8_t code) const;
  absl::Status ReadGroups(const ScaleReader& scales, int64_t row, RowGroups* row_groups) const;
  absl::Status StoreRow(kernels::WeightFormat format, const uint8_t* codes, topology::Range columns,
                        const RowGroups& row_groups, std::byte* row) const;
  absl::Status StoreNumberRow(kernels::WeightFormat format, const uint8_t* codes,
                              topology::Range columns, const RowGroups& row_groups,
                              std::byte* row) const;
  absl::Status StoreBFloat16(topology::Range rows, topology::Range columns,
                             std::byte* blocks) const;
  absl::Status DecodeRun(const uint8_t* codes, int64_t count, float scale, int zero_point,
                         float* values) const;

  const QuantizedParts parts_;
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_QUANTIZED_MATRIX_H_
