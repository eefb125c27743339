#include "runtime/weights/slice_rows.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "kernels/formats/weight_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/quantized/storage_blocks.h"

namespace trireme::weights {
namespace {

constexpr int64_t kRunBytes = int64_t{1} << 20;  // fits a core's own cache beside what is packed

// Of the storage block that holds the slice's first column.
int64_t FirstStoredColumn(const kernels::SliceShape& shape) {
  const int64_t values = kernels::InfoOf(shape.format).storage_values;
  return shape.first_column / values * values;
}

// Whether the rows are given to the packer as they lie in the file.
bool LiesReady(const PlannedTensor& tensor, const PlannedSlice& slice) {
  return tensor.stored.quantized == nullptr && !slice.is_decoded && !tensor.is_transposed;
}

// Whether elements are moved as they are stored, not decoded.
bool MovesElements(const PlannedTensor& tensor, const PlannedSlice& slice) {
  return !slice.is_decoded && tensor.stored.quantized == nullptr &&
         kernels::InfoOf(tensor.stored.format).storage_values == 1;
}

// Into the buffer's bytes, `row_bytes` a row: elements as they are, or decoded to float32.
absl::Status GatherRows(const PlannedTensor& tensor, const PlannedSlice& slice,
                        topology::Range rows, int64_t element_bytes, RowBuffer* buffer) {
  const StoredTensor& stored = tensor.stored;
  const bool moves = MovesElements(tensor, slice);
  const int64_t row_bytes = slice.shape.columns * element_bytes;
  // The columns of a stored row that are wanted of it.
  const StoredPlace first = PlaceOf(tensor, slice, rows.begin, 0);
  const StoredPlace last = PlaceOf(tensor, slice, rows.end - 1, slice.shape.columns - 1);
  const topology::Range columns = {first.column, last.column + 1};
  buffer->values.resize(moves ? 0 : static_cast<size_t>(columns.size()));
  const int64_t stored_rows = tensor.is_transposed ? slice.shape.columns : rows.size();
  for (int64_t i = 0; i < stored_rows; ++i) {
    const int64_t stored_row = first.row + i * (tensor.is_transposed ? 1 : tensor.row_step);
    const std::byte* elements = reinterpret_cast<const std::byte*>(buffer->values.data());
    if (moves) {
      elements = stored.data + stored_row * stored.row_bytes + columns.begin * element_bytes;
    } else {
      RETURN_IF_ERROR(stored.Decode(stored_row, columns, buffer->values.data()));
    }
    if (!tensor.is_transposed) {
      std::memcpy(buffer->bytes.data() + i * row_bytes, elements, static_cast<size_t>(row_bytes));
      continue;
    }
    for (int64_t row = 0; row < rows.size(); ++row) {
      std::memcpy(buffer->bytes.data() + row * row_bytes + i * element_bytes,
                  elements + row * tensor.row_step * element_bytes,
                  static_cast<size_t>(element_bytes));
    }
  }
  return absl::OkStatus();
}

// A quantised checkpoint's matrix as storage blocks of the slice's format, from the block on in
// which the slice begins.
absl::Status StoreRows(const PlannedTensor& tensor, const PlannedSlice& slice, topology::Range rows,
                       int64_t row_bytes, RowBuffer* buffer) {
  const kernels::SliceShape& shape = slice.shape;
  const QuantizedMatrix& matrix = *tensor.stored.quantized;
  const topology::Range columns = {FirstStoredColumn(shape), shape.first_column + shape.columns};
  const int64_t first = PlaceOf(tensor, slice, rows.begin, 0).row;
  if (tensor.row_step == 1) {
    return matrix.Store(shape.format, {first, first + rows.size()}, columns, buffer->bytes.data());
  }
  for (int64_t i = 0; i < rows.size(); ++i) {
    const int64_t row = first + i * tensor.row_step;
    RETURN_IF_ERROR(
        matrix.Store(shape.format, {row, row + 1}, columns, buffer->bytes.data() + i * row_bytes));
  }
  return absl::OkStatus();
}

bool StoresBlocks(const PlannedTensor& tensor) {
  return tensor.stored.quantized != nullptr && !tensor.is_transposed;
}

int64_t GatheredRowBytes(const PlannedTensor& tensor, const PlannedSlice& slice) {
  const kernels::SliceShape& shape = slice.shape;
  if (StoresBlocks(tensor)) {
    return BlockBytes(shape.format, shape.first_column + shape.columns - FirstStoredColumn(shape));
  }
  return shape.columns * (MovesElements(tensor, slice)
                              ? kernels::InfoOf(tensor.stored.format).storage_bytes
                              : static_cast<int64_t>(sizeof(float)));
}

}  // namespace

StoredPlace PlaceOf(const PlannedTensor& tensor, const PlannedSlice& slice, int64_t slice_row,
                    int64_t slice_column) {
  const int64_t row_place = (slice.first_row + slice_row) * tensor.row_step;
  const int64_t column_place = slice.shape.first_column + slice_column;
  return tensor.is_transposed
             ? StoredPlace{tensor.first_row + column_place, tensor.first_column + row_place}
             : StoredPlace{tensor.first_row + row_place, column_place};
}

int64_t RowsOfRun(const PlannedTensor& tensor, const PlannedSlice& slice) {
  const int64_t row_bytes =
      LiesReady(tensor, slice) ? tensor.stored.row_bytes : GatheredRowBytes(tensor, slice);
  return std::max<int64_t>(1, kRunBytes / row_bytes / kPanelRowsMax) * kPanelRowsMax;
}

absl::StatusOr<kernels::PackArgs> SliceRows(const PlannedTensor& tensor, const PlannedSlice& slice,
                                            topology::Range rows, RowBuffer* buffer) {
  kernels::PackArgs args{.shape = slice.shape};
  args.shape.rows = rows.size();
  if (LiesReady(tensor, slice)) {
    const int64_t first_row = PlaceOf(tensor, slice, rows.begin, 0).row;
    args.source = tensor.stored.data + first_row * tensor.stored.row_bytes;
    args.source_row_bytes = tensor.row_step * tensor.stored.row_bytes;
    return args;
  }
  args.source_row_bytes = GatheredRowBytes(tensor, slice);
  // Zeros: groups of a superblock that the slice does not have are not stored.
  buffer->bytes.assign(static_cast<size_t>(rows.size() * args.source_row_bytes), std::byte{0});
  if (StoresBlocks(tensor)) {
    RETURN_IF_ERROR(StoreRows(tensor, slice, rows, args.source_row_bytes, buffer));
    args.shape.first_column -= FirstStoredColumn(slice.shape);
  } else {
    RETURN_IF_ERROR(
        GatherRows(tensor, slice, rows, args.source_row_bytes / slice.shape.columns, buffer));
    args.shape.first_column = 0;
  }
  args.source = buffer->bytes.data();
  return args;
}

}  // namespace trireme::weights
