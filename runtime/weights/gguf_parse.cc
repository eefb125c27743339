#include "runtime/weights/gguf_parse.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"
#include "runtime/weights/gguf_cursor.h"

namespace trireme::weights {
namespace {

constexpr uint32_t kOldestVersion = 2;
constexpr uint32_t kNewestVersion = 3;

// Smallest records: an empty key with a one-byte value, a nameless scalar tensor.
constexpr int64_t kLeastEntryBytes = 8 + 4 + 1;
constexpr int64_t kLeastTensorBytes = 8 + 4 + 4 + 8;
// Limits of our own, which bound the memory of a hostile file: known models have under 200 keys
// and, with each expert as its own tensor, under 50 000 tensors.
constexpr int64_t kMaxEntries = int64_t{1} << 16;
constexpr int64_t kMaxTensors = int64_t{1} << 17;
constexpr size_t kMaxKeyBytes = 65535;
constexpr size_t kMaxTensorNameBytes = 64;

constexpr absl::string_view kAlignmentKey = "general.alignment";
constexpr int64_t kDefaultAlignment = 32;
constexpr int64_t kMaxAlignment = int64_t{1} << 31;

absl::Status CheckName(const GgufCursor& cursor, int64_t offset, absl::string_view name,
                       size_t max_bytes) {
  if (name.empty()) {
    return cursor.ErrorAt(offset, "the name is empty, wanted at least one byte");
  }
  if (name.size() > max_bytes) {
    return cursor.ErrorAt(offset, absl::StrCat("the name has a length of ", name.size(),
                                               " bytes, wanted at most ", max_bytes));
  }
  if (!IsValidUtf8(name)) {
    return cursor.ErrorAt(offset,
                          absl::StrCat("the name \"", PrintableName(name), "\" is not UTF-8"));
  }
  if (name.find('\0') != absl::string_view::npos) {
    return cursor.ErrorAt(offset,
                          absl::StrCat("the name \"", PrintableName(name), "\" holds a zero byte"));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> ReadVersion(absl::Span<const uint8_t> bytes, GgufCursor& cursor) {
  if (bytes.empty()) {
    return cursor.Error("the file is empty, wanted a GGUF file; fetch it again");
  }
  RETURN_IF_ERROR(cursor.Skip(4, "the magic"));
  const absl::string_view magic(reinterpret_cast<const char*>(bytes.data()), 4);
  if (magic != "GGUF") {
    return cursor.ErrorAt(0, absl::StrCat("the magic is \"", absl::CEscape(magic),
                                          "\", wanted \"GGUF\": this is no GGUF file"));
  }
  ASSIGN_OR_RETURN(const uint32_t version, cursor.ReadNumber<uint32_t>("the version"));
  if (version != 0 && (version & 0xffff) == 0) {
    return cursor.ErrorAt(4, absl::StrCat("the version reads as ", version,
                                          ": this is a big-endian file, wanted a little-endian "
                                          "one; convert it again without the big-endian option"));
  }
  if (version < kOldestVersion || version > kNewestVersion) {
    return cursor.ErrorAt(
        4, absl::StrCat("the version is ", version, ", wanted ", kOldestVersion, " or ",
                        kNewestVersion,
                        version < kOldestVersion ? "; convert the model again"
                                                 : "; a newer program may read it"));
  }
  return version;
}

absl::StatusOr<std::vector<GgufEntry>> ReadEntries(absl::Span<const uint8_t> bytes, int64_t count,
                                                   GgufCursor& cursor) {
  std::vector<GgufEntry> entries;
  entries.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t offset = cursor.offset();
    cursor.SetSubject(absl::StrCat("metadata key ", i + 1, " of ", count));
    ASSIGN_OR_RETURN(const absl::string_view key, cursor.ReadString("the key"));
    RETURN_IF_ERROR(CheckName(cursor, offset, key, kMaxKeyBytes));
    cursor.SetSubject(absl::StrCat("metadata key ", PrintableName(key)));
    ASSIGN_OR_RETURN(const GgufValue value, ReadGgufValue(bytes, cursor));
    entries.push_back(GgufEntry{.key = key, .value = value, .offset = offset});
  }
  return entries;
}

absl::StatusOr<int64_t> AlignmentOf(const GgufMetadata& metadata) {
  ASSIGN_OR_RETURN(const int64_t alignment,
                   metadata.GetIntegerOr(kAlignmentKey, kDefaultAlignment,
                                         IntegerRange{.min = 1, .max = kMaxAlignment}));
  if ((alignment & (alignment - 1)) != 0) {
    return metadata.Error(kAlignmentKey, absl::StrCat("is ", alignment, ", wanted a power of two"));
  }
  return alignment;
}

// Fills elements and size_bytes from dimensions and type.
absl::Status MeasureTensor(const GgufCursor& cursor, GgufTensor& tensor) {
  const std::string shape = absl::StrJoin(
      absl::MakeConstSpan(tensor.dimensions).subspan(0, tensor.dimension_count), " x ");
  if (tensor.dimensions[0] % tensor.type->block_values != 0) {
    return cursor.ErrorAt(
        tensor.record_offset,
        absl::StrCat("a row has ", tensor.dimensions[0], " values, wanted a multiple of ",
                     tensor.type->block_values, ", the block of type ", tensor.type->name));
  }
  int64_t size_bytes = tensor.dimensions[0] / tensor.type->block_values;
  int64_t elements = tensor.dimensions[0];
  bool overflows = __builtin_mul_overflow(size_bytes, tensor.type->block_bytes, &size_bytes);
  for (size_t i = 1; i < tensor.dimensions.size(); ++i) {
    overflows |= __builtin_mul_overflow(size_bytes, tensor.dimensions[i], &size_bytes);
    overflows |= __builtin_mul_overflow(elements, tensor.dimensions[i], &elements);
  }
  if (overflows) {
    return cursor.ErrorAt(tensor.record_offset,
                          absl::StrCat("the dimensions ", shape, " of type ", tensor.type->name,
                                       " overflow: the size in bytes is too large for 64 bits"));
  }
  tensor.elements = elements;
  tensor.size_bytes = size_bytes;
  return absl::OkStatus();
}

// data_offset is still as in the record: unsigned, and relative to the start of the data.
struct TensorRecord {
  GgufTensor tensor;
  uint64_t relative_offset;
};

absl::StatusOr<TensorRecord> ReadTensor(GgufCursor& cursor) {
  GgufTensor tensor = {};
  tensor.record_offset = cursor.offset();
  ASSIGN_OR_RETURN(tensor.name, cursor.ReadString("the name"));
  RETURN_IF_ERROR(CheckName(cursor, tensor.record_offset, tensor.name, kMaxTensorNameBytes));
  cursor.SetSubject(absl::StrCat("tensor ", PrintableName(tensor.name)));
  ASSIGN_OR_RETURN(const uint32_t dimension_count,
                   cursor.ReadNumber<uint32_t>("the number of dimensions"));
  if (dimension_count > kMaxGgufDimensions) {
    return cursor.Error(absl::StrCat("it has ", dimension_count, " dimensions, wanted at most ",
                                     kMaxGgufDimensions));
  }
  tensor.dimension_count = static_cast<int>(dimension_count);
  tensor.dimensions.fill(1);
  for (size_t i = 0; i < dimension_count; ++i) {
    ASSIGN_OR_RETURN(const uint64_t dimension, cursor.ReadNumber<uint64_t>("a dimension"));
    if (dimension > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return cursor.Error(
          absl::StrCat("dimension ", i, " is ", dimension, ", too large: wanted under 2^63"));
    }
    tensor.dimensions[i] = static_cast<int64_t>(dimension);
  }
  ASSIGN_OR_RETURN(const uint32_t type_id, cursor.ReadNumber<uint32_t>("the tensor type"));
  tensor.type = FindGgmlType(type_id);
  if (tensor.type == nullptr) {
    return cursor.Error(absl::StrCat("the tensor type is ", type_id,
                                     ", unknown or withdrawn; convert the model to a known type"));
  }
  ASSIGN_OR_RETURN(const uint64_t offset, cursor.ReadNumber<uint64_t>("the data offset"));
  RETURN_IF_ERROR(MeasureTensor(cursor, tensor));
  return TensorRecord{.tensor = tensor, .relative_offset = offset};
}

struct DataSection {
  int64_t start;
  int64_t size_bytes;
  int64_t alignment;
};

absl::StatusOr<GgufTensor> PlaceTensor(const TensorRecord& record, const DataSection& data,
                                       const GgufCursor& cursor) {
  GgufTensor tensor = record.tensor;
  const std::string subject = absl::StrCat("tensor ", PrintableName(tensor.name), ": ");
  if (record.relative_offset % static_cast<uint64_t>(data.alignment) != 0) {
    return cursor.ErrorAt(tensor.record_offset,
                          absl::StrCat(subject, "the data offset ", record.relative_offset,
                                       " is not aligned: wanted a multiple of ", data.alignment));
  }
  const uint64_t available = static_cast<uint64_t>(std::max<int64_t>(data.size_bytes, 0));
  if (record.relative_offset > available ||
      static_cast<uint64_t>(tensor.size_bytes) > available - record.relative_offset) {
    return cursor.ErrorAt(
        tensor.record_offset,
        absl::StrCat(subject, "its data (offset ", record.relative_offset, ", size ",
                     tensor.size_bytes, " bytes) lies beyond the end of the file: ", available,
                     " bytes of data from byte ", data.start,
                     " on; the file is truncated, fetch it again"));
  }
  tensor.data_offset = data.start + static_cast<int64_t>(record.relative_offset);
  return tensor;
}

absl::Status CheckNoOverlap(const std::vector<GgufTensor>& tensors, const GgufCursor& cursor) {
  std::vector<int32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&tensors](int32_t a, int32_t b) {
    return tensors[a].data_offset < tensors[b].data_offset;
  });
  const GgufTensor* before = nullptr;
  for (const int32_t index : order) {
    const GgufTensor& tensor = tensors[index];
    if (tensor.size_bytes == 0) {
      continue;
    }
    if (before != nullptr && tensor.data_offset < before->data_offset + before->size_bytes) {
      return cursor.ErrorAt(
          tensor.record_offset,
          absl::StrCat("tensor ", PrintableName(tensor.name), ": its data at byte ",
                       tensor.data_offset, " overlaps that of tensor ", PrintableName(before->name),
                       ", bytes ", before->data_offset, " to ",
                       before->data_offset + before->size_bytes - 1));
    }
    before = &tensor;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TensorRecord>> ReadTensors(int64_t count, GgufCursor& cursor) {
  std::vector<TensorRecord> records;
  records.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    cursor.SetSubject(absl::StrCat("tensor ", i + 1, " of ", count));
    ASSIGN_OR_RETURN(TensorRecord record, ReadTensor(cursor));
    records.push_back(record);
  }
  return records;
}

}  // namespace

absl::StatusOr<GgufPart> ParseGguf(const std::string& file_name, absl::Span<const uint8_t> bytes) {
  GgufCursor cursor(file_name, bytes);
  ASSIGN_OR_RETURN(const uint32_t version, ReadVersion(bytes, cursor));
  ASSIGN_OR_RETURN(const int64_t tensor_count,
                   cursor.ReadCount("the number of tensors", kLeastTensorBytes, kMaxTensors));
  ASSIGN_OR_RETURN(const int64_t entry_count, cursor.ReadCount("the number of key/value pairs",
                                                               kLeastEntryBytes, kMaxEntries));
  ASSIGN_OR_RETURN(std::vector<GgufEntry> entries, ReadEntries(bytes, entry_count, cursor));
  ASSIGN_OR_RETURN(GgufMetadata metadata, GgufMetadata::Create(file_name, std::move(entries)));
  ASSIGN_OR_RETURN(const int64_t alignment, AlignmentOf(metadata));
  ASSIGN_OR_RETURN(const std::vector<TensorRecord> records, ReadTensors(tensor_count, cursor));

  const int64_t end = cursor.offset();
  const int64_t size = static_cast<int64_t>(bytes.size());
  GgufPart part = {.version = version,
                   .alignment = alignment,
                   .data_start = (end + alignment - 1) & ~(alignment - 1),
                   .metadata = std::move(metadata),
                   .tensors = {}};
  if (records.empty()) {
    part.data_start = size;
    return part;
  }
  cursor.SetSubject("tensor data");
  const DataSection data = {
      .start = part.data_start, .size_bytes = size - part.data_start, .alignment = alignment};
  if (data.size_bytes < 0) {
    return cursor.Error(absl::StrCat("the data would start at byte ", data.start,
                                     ", beyond the end of the file (", size,
                                     " bytes); the file is truncated, fetch it again"));
  }
  part.tensors.reserve(records.size());
  for (const TensorRecord& record : records) {
    ASSIGN_OR_RETURN(const GgufTensor tensor, PlaceTensor(record, data, cursor));
    part.tensors.push_back(tensor);
  }
  RETURN_IF_ERROR(CheckNoOverlap(part.tensors, cursor));
  return part;
}

}  // namespace trireme::weights
