#include "runtime/weights/quantized/quantized_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_format.h"
#include "kernels/formats/codebook.h"
#include "kernels/scalar_types.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/quantized/number_blocks.h"
#include "runtime/weights/quantized/storage_blocks.h"

namespace trireme::weights {
namespace {

// Rows that are decoded together: words packed along the inputs hold neighbouring outputs beside
// each other.
constexpr int64_t kRowsAtOnce = 16;
constexpr float kPerSignedByte = 1.0F / 127;
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

template <typename NumberOf>
NumberTable TableOf(const NumberOf& number_of) {
  NumberTable table;
  for (int code = 0; code < static_cast<int>(table.size()); ++code) {
    table[code] = number_of(code);
  }
  return table;
}

}  // namespace

const NumberTable& E4M3Numbers() {
  static const NumberTable table =
      TableOf([](int code) { return kernels::E4M3ToFloat(static_cast<uint8_t>(code)); });
  return table;
}

const NumberTable& E5M2Numbers() {
  static const NumberTable table = TableOf([](int code) {
    const float number = kernels::E5M2ToFloat(static_cast<uint8_t>(code));
    return std::isfinite(number) ? number : kNoNumber;
  });
  return table;
}

const NumberTable& E2M1Numbers() {
  static const NumberTable table = TableOf([](int code) {
    constexpr kernels::CodebookValues kDoubles = kernels::ValuesOf(kernels::Codebook::kE2M1);
    return code < kernels::kCodebookEntries ? 0.5F * static_cast<float>(kDoubles.values[code])
                                            : kNoNumber;
  });
  return table;
}

const NumberTable& TernaryNumbers() {
  static const NumberTable table =
      TableOf([](int code) { return code < 3 ? static_cast<float>(code - 1) : kNoNumber; });
  return table;
}

void QuantizedParts::Add(const StoredPart& part) {
  names.push_back(part.name);
  stored_bytes += static_cast<int64_t>(part.bytes.size());
}

int64_t QuantizedMatrix::GroupOf(int64_t column) const {
  return parts_.group_of_column.empty() ? column / parts_.group_columns
                                        : parts_.group_of_column[static_cast<size_t>(column)];
}

absl::Status QuantizedMatrix::ReadGroups(const ScaleReader& scales, int64_t row,
                                         RowGroups* row_groups) const {
  const topology::Range groups = row_groups->groups;
  row_groups->scales.resize(static_cast<size_t>(groups.size()));
  RETURN_IF_ERROR(scales.Read(row, groups, row_groups->scales.data()));
  row_groups->zero_points.assign(static_cast<size_t>(groups.size()),
                                 static_cast<uint8_t>(parts_.zero_point));
  if (parts_.zero_points != nullptr) {
    parts_.zero_points->Read({row, row + 1}, groups, row_groups->zero_points.data());
  }
  return absl::OkStatus();
}

absl::Status QuantizedMatrix::CodeError(uint8_t code) const {
  return parts_.source->PartError(
      parts_.names.front(),
      absl::StrFormat("holds the code 0x%02X, which stands for no number in %s: the file is "
                      "damaged, or of another layout",
                      code, parts_.scheme));
}

absl::Status QuantizedMatrix::DecodeRun(const uint8_t* codes, int64_t count, float scale,
                                        int zero_point, float* values) const {
  switch (parts_.meaning) {
    case CodeMeaning::kInteger:
      for (int64_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>(codes[i] - zero_point) * scale + 0.0F;
      }
      return absl::OkStatus();
    case CodeMeaning::kSignedByte:
      for (int64_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>(codes[i] - 128) * scale * kPerSignedByte + 0.0F;
      }
      return absl::OkStatus();
    case CodeMeaning::kTable:
    case CodeMeaning::kTableDivided:
      break;
  }
  for (int64_t i = 0; i < count; ++i) {
    const float number = parts_.numbers[codes[i]];
    if (std::isnan(number)) {
      return CodeError(codes[i]);
    }
    values[i] = (parts_.meaning == CodeMeaning::kTable ? number * scale : number / scale) + 0.0F;
  }
  return absl::OkStatus();
}

absl::Status QuantizedMatrix::Decode(topology::Range rows, topology::Range columns,
                                     float* values) const {
  const bool has_runs = parts_.group_of_column.empty();
  RowGroups row_groups;
  row_groups.groups = has_runs
                          ? topology::Range{GroupOf(columns.begin), GroupOf(columns.end - 1) + 1}
                          : topology::Range{0, parts_.groups};
  std::vector<uint8_t> codes(static_cast<size_t>(kRowsAtOnce * columns.size()));
  for (int64_t first = rows.begin; first < rows.end; first += kRowsAtOnce) {
    const int64_t end = std::min(rows.end, first + kRowsAtOnce);
    parts_.codes->Read({first, end}, columns, codes.data());
    for (int64_t row = first; row < end; ++row) {
      RETURN_IF_ERROR(ReadGroups(*parts_.scales, row, &row_groups));
      const uint8_t* row_codes = codes.data() + (row - first) * columns.size();
      for (int64_t column = columns.begin; column < columns.end;) {
        const int64_t group = GroupOf(column);
        const int64_t run_end =
            has_runs ? std::min(columns.end, (group + 1) * parts_.group_columns) : column + 1;
        const auto place = static_cast<size_t>(group - row_groups.groups.begin);
        RETURN_IF_ERROR(DecodeRun(row_codes, run_end - column, row_groups.scales[place],
                                  row_groups.zero_points[place], values));
        row_codes += run_end - column;
        values += run_end - column;
        column = run_end;
      }
    }
  }
  return absl::OkStatus();
}

bool QuantizedMatrix::HasWholeGroups() const {
  return parts_.group_of_column.empty() && parts_.extents.columns % kBlockColumns == 0 &&
         parts_.group_columns % kBlockColumns == 0;
}

bool QuantizedMatrix::IsTernary() const {
  return parts_.meaning == CodeMeaning::kTable && parts_.code_bits == 2;
}

absl::StatusOr<bool> QuantizedMatrix::AllScales(bool (*holds)(float scale)) const {
  std::vector<float> scales(static_cast<size_t>(parts_.groups));
  for (int64_t row = 0; row < parts_.extents.rows; ++row) {
    RETURN_IF_ERROR(parts_.scales->Read(row, {0, parts_.groups}, scales.data()));
    if (!std::all_of(scales.begin(), scales.end(), holds)) {
      return false;
    }
  }
  return true;
}

kernels::WeightFormat QuantizedMatrix::IntegersFormat() const {
  if (IsTernary()) {
    return IntegerFormat(-1, 1);
  }
  int least = parts_.zero_point;
  int most = parts_.zero_point;
  if (parts_.zero_points != nullptr) {
    std::vector<uint8_t> points(static_cast<size_t>(parts_.groups));
    least = 255;
    most = 0;
    for (int64_t row = 0; row < parts_.extents.rows; ++row) {
      parts_.zero_points->Read({row, row + 1}, {0, parts_.groups}, points.data());
      least = std::min<int>(least, *std::min_element(points.begin(), points.end()));
      most = std::max<int>(most, *std::max_element(points.begin(), points.end()));
    }
  }
  // Below -1: groups of one superblock of ternary numbers could not have scales of their own.
  return IntegerFormat(std::min(-most, -2), (1 << parts_.code_bits) - 1 - least);
}

absl::StatusOr<kernels::WeightFormat> QuantizedMatrix::NumbersFormat() const {
  const NumberFormatChoice choice = {
      .kind = parts_.kind,
      .range = parts_.scales->range(),
      .two_levels = parts_.scales->two_levels(),
      // One group is a row, whatever its length.
      .group_columns = parts_.groups == 1 ? 0 : parts_.group_columns};
  if (!parts_.group_of_column.empty() || parts_.extents.columns % kBlockColumns != 0) {
    return kernels::WeightFormat::kF32;
  }
  const kernels::WeightFormat format = NumberFormat(choice);
  const bool has_block_scales =
      choice.two_levels == nullptr && !kernels::InfoOf(format).is_quantized;
  if (!has_block_scales || format == kernels::WeightFormat::kF32) {
    return format;
  }
  ASSIGN_OR_RETURN(const bool are_held, AllScales(IsBlockScale));
  return are_held ? format : kernels::WeightFormat::kF32;
}

absl::StatusOr<kernels::WeightFormat> QuantizedMatrix::MemoryFormat() const {
  const ScaleRange range = parts_.scales->range();
  if (parts_.meaning == CodeMeaning::kTable && parts_.kind != kernels::NumberKind::kInteger) {
    ASSIGN_OR_RETURN(const kernels::WeightFormat format, NumbersFormat());
    if (format != kernels::WeightFormat::kF32) {
      return format;
    }
  }
  if (range == ScaleRange::kExponents && parts_.meaning == CodeMeaning::kTable &&
      parts_.kind != kernels::NumberKind::kE2M1) {
    // A number of 8 bits times a power of two.
    ASSIGN_OR_RETURN(const bool are_normal,
                     AllScales([](float scale) { return scale > 0x1p-100F; }));
    return are_normal ? kernels::WeightFormat::kBF16 : kernels::WeightFormat::kF32;
  }
  if (!HasWholeGroups()) {
    return kernels::WeightFormat::kF32;
  }
  if (!IsTernary() && parts_.meaning != CodeMeaning::kInteger) {
    return kernels::WeightFormat::kF32;
  }
  ASSIGN_OR_RETURN(const bool are_halves,
                   range == ScaleRange::kHalves ? absl::StatusOr<bool>(true) : AllScales(IsHalf));
  return are_halves ? IntegersFormat() : kernels::WeightFormat::kF32;
}

absl::Status QuantizedMatrix::StoreRow(kernels::WeightFormat format, const uint8_t* codes,
                                       topology::Range columns, const RowGroups& row_groups,
                                       std::byte* row) const {
  for (int64_t column = columns.begin; column < columns.end; column += kBlockColumns) {
    const auto place = static_cast<size_t>(GroupOf(column) - row_groups.groups.begin);
    const int offset = IsTernary() ? 1 : row_groups.zero_points[place];
    int numbers[kBlockColumns];
    for (int& number : numbers) {
      if (parts_.meaning == CodeMeaning::kTable && std::isnan(parts_.numbers[*codes])) {
        return CodeError(*codes);
      }
      number = *codes++ - offset;
    }
    StoreNumbers(format, numbers, row_groups.scales[place], column - columns.begin, row);
  }
  return absl::OkStatus();
}

absl::Status QuantizedMatrix::StoreNumberRow(kernels::WeightFormat format, const uint8_t* codes,
                                             topology::Range columns, const RowGroups& row_groups,
                                             std::byte* row) const {
  const TwoLevelScales* const two_levels = parts_.scales->two_levels();
  for (int64_t column = columns.begin; column < columns.end; column += kBlockColumns) {
    NumberGroup group;
    group.tensor_scale = two_levels == nullptr ? 1 : two_levels->tensor_scale();
    for (int64_t i = 0; i < kBlockColumns; ++i) {
      const auto place = static_cast<size_t>(GroupOf(column + i) - row_groups.groups.begin);
      const float scale = row_groups.scales[place];
      const uint8_t code = *codes++;
      const float number = parts_.numbers[code];
      if (std::isnan(number)) {
        return CodeError(code);
      }
      group.scales[i / kHalfGroupColumns] = scale;
      // Zeros of either sign are +0, as Decode has them.
      group.codes[i] = number * scale == 0 ? ZeroCode(parts_.kind) : code;
    }
    StoreNumberGroup(format, group, column - columns.begin, row);
  }
  return absl::OkStatus();
}

absl::Status QuantizedMatrix::StoreBFloat16(topology::Range rows, topology::Range columns,
                                            std::byte* blocks) const {
  std::vector<float> values(static_cast<size_t>(kRowsAtOnce * columns.size()));
  for (int64_t first = rows.begin; first < rows.end; first += kRowsAtOnce) {
    const topology::Range some = {first, std::min(rows.end, first + kRowsAtOnce)};
    RETURN_IF_ERROR(Decode(some, columns, values.data()));
    for (int64_t i = 0; i < some.size() * columns.size(); ++i) {
      const uint16_t value = kernels::FloatToBFloat16(values[static_cast<size_t>(i)]);
      std::memcpy(blocks, &value, sizeof(value));
      blocks += sizeof(value);
    }
  }
  return absl::OkStatus();
}

absl::Status QuantizedMatrix::Store(kernels::WeightFormat format, topology::Range rows,
                                    topology::Range columns, std::byte* blocks) const {
  if (format == kernels::WeightFormat::kF32) {
    return Decode(rows, columns, reinterpret_cast<float*>(blocks));
  }
  if (format == kernels::WeightFormat::kBF16) {
    return StoreBFloat16(rows, columns, blocks);
  }
  const int64_t row_bytes = BlockBytes(format, columns.size());
  const bool has_numbers = !kernels::InfoOf(format).is_quantized;
  const TwoLevelScales* const two_levels = parts_.scales->two_levels();
  const ScaleReader& scales =
      has_numbers && two_levels != nullptr ? two_levels->first() : *parts_.scales;
  RowGroups row_groups = {.groups = {GroupOf(columns.begin), GroupOf(columns.end - 1) + 1}};
  std::vector<uint8_t> codes(static_cast<size_t>(kRowsAtOnce * columns.size()));
  for (int64_t first = rows.begin; first < rows.end; first += kRowsAtOnce) {
    const int64_t end = std::min(rows.end, first + kRowsAtOnce);
    parts_.codes->Read({first, end}, columns, codes.data());
    for (int64_t row = first; row < end; ++row) {
      RETURN_IF_ERROR(ReadGroups(scales, row, &row_groups));
      const uint8_t* const row_codes = codes.data() + (row - first) * columns.size();
      std::byte* const row_blocks = blocks + (row - rows.begin) * row_bytes;
      RETURN_IF_ERROR(has_numbers
                          ? StoreNumberRow(format, row_codes, columns, row_groups, row_blocks)
                          : StoreRow(format, row_codes, columns, row_groups, row_blocks));
    }
  }
  return absl::OkStatus();
}

}  // namespace trireme::weights
