#include "runtime/weights/gguf_value.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"

namespace trireme::weights {
namespace {

struct TypeInfo {
  const char* name;
  int64_t fixed_bytes;  // 0: the value says how long it is
  int64_t least_bytes;
};

constexpr TypeInfo kTypes[kGgufTypeCount] = {
    {"u8", 1, 1},  {"i8", 1, 1},  {"u16", 2, 2},  {"i16", 2, 2},    {"u32", 4, 4},
    {"i32", 4, 4}, {"f32", 4, 4}, {"bool", 1, 1}, {"string", 0, 8}, {"array", 0, 12},
    {"u64", 8, 8}, {"i64", 8, 8}, {"f64", 8, 8},
};
// An array starts with its element type (u32) and its element count (u64).
constexpr int64_t kArrayCountOffset = 4;
constexpr int64_t kArrayHeaderBytes = 12;
constexpr int64_t kStringHeaderBytes = 8;

const TypeInfo& InfoOf(GgufType type) { return kTypes[static_cast<uint32_t>(type)]; }

absl::StatusOr<GgufType> ReadType(GgufCursor& cursor, absl::string_view what) {
  const int64_t start = cursor.offset();
  ASSIGN_OR_RETURN(const uint32_t id, cursor.ReadNumber<uint32_t>(what));
  if (id >= kGgufTypeCount) {
    return cursor.ErrorAt(
        start, absl::StrCat(what, " is ", id, ", unknown: wanted 0 to ", kGgufTypeCount - 1,
                            "; the file is damaged or of a "
                            "newer format"));
  }
  return static_cast<GgufType>(id);
}

// Recursion is bounded by kMaxGgufArrayDepth.
absl::Status SkipValue(GgufType type, int depth, GgufCursor& cursor) {
  if (InfoOf(type).fixed_bytes > 0) {
    return cursor.Skip(InfoOf(type).fixed_bytes, "the value");
  }
  if (type == GgufType::kString) {
    return cursor.ReadString(depth == 0 ? "the value" : "an element").status();
  }
  if (depth == kMaxGgufArrayDepth) {
    return cursor.Error(absl::StrCat("arrays are nested more than ", kMaxGgufArrayDepth,
                                     " deep; no such model is known, the file is damaged"));
  }
  ASSIGN_OR_RETURN(const GgufType element_type, ReadType(cursor, "the element type"));
  ASSIGN_OR_RETURN(const int64_t count,
                   cursor.ReadCount("the element count", InfoOf(element_type).least_bytes,
                                    std::numeric_limits<int64_t>::max()));
  if (InfoOf(element_type).fixed_bytes > 0) {
    return cursor.Skip(count * InfoOf(element_type).fixed_bytes, "the elements");
  }
  for (int64_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(SkipValue(element_type, depth + 1, cursor));
  }
  return absl::OkStatus();
}

// The bytes of a value at the start of `encoded`, or -1 when it does not fit: possible only when
// the file was changed after it was checked.
int64_t EncodedBytes(GgufType type, int depth, absl::Span<const uint8_t> encoded) {
  const int64_t available = static_cast<int64_t>(encoded.size());
  if (available < InfoOf(type).least_bytes) {
    return -1;
  }
  if (InfoOf(type).fixed_bytes > 0) {
    return InfoOf(type).fixed_bytes;
  }
  if (type == GgufType::kString) {
    const uint64_t length = LoadUnaligned<uint64_t>(encoded.data());
    const bool fits = length <= static_cast<uint64_t>(available - kStringHeaderBytes);
    return fits ? kStringHeaderBytes + static_cast<int64_t>(length) : -1;
  }
  const uint32_t element_id = LoadUnaligned<uint32_t>(encoded.data());
  if (element_id >= kGgufTypeCount || depth == kMaxGgufArrayDepth) {
    return -1;
  }
  const GgufType element_type = static_cast<GgufType>(element_id);
  const int64_t count = LoadUnaligned<int64_t>(encoded.data() + kArrayCountOffset);
  int64_t bytes = kArrayHeaderBytes;
  if (InfoOf(element_type).fixed_bytes > 0) {
    const bool fits = count <= (available - bytes) / InfoOf(element_type).fixed_bytes;
    return fits ? bytes + count * InfoOf(element_type).fixed_bytes : -1;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t element_bytes =
        EncodedBytes(element_type, depth + 1, encoded.subspan(static_cast<size_t>(bytes)));
    if (element_bytes < 0) {
      return -1;
    }
    bytes += element_bytes;
  }
  return bytes;
}

}  // namespace

const char* NameOf(GgufType type) { return InfoOf(type).name; }

std::optional<int64_t> GgufValue::AsInteger() const {
  const uint8_t* const data = encoded_.data();
  switch (type_) {
    case GgufType::kUint8:
      return LoadUnaligned<uint8_t>(data);
    case GgufType::kInt8:
      return LoadUnaligned<int8_t>(data);
    case GgufType::kUint16:
      return LoadUnaligned<uint16_t>(data);
    case GgufType::kInt16:
      return LoadUnaligned<int16_t>(data);
    case GgufType::kUint32:
      return LoadUnaligned<uint32_t>(data);
    case GgufType::kInt32:
      return LoadUnaligned<int32_t>(data);
    case GgufType::kInt64:
      return LoadUnaligned<int64_t>(data);
    case GgufType::kUint64: {
      const uint64_t value = LoadUnaligned<uint64_t>(data);
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return std::nullopt;
      }
      return static_cast<int64_t>(value);
    }
    case GgufType::kFloat32:
    case GgufType::kBool:
    case GgufType::kString:
    case GgufType::kArray:
    case GgufType::kFloat64:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<uint64_t> GgufValue::AsUnsigned() const {
  if (type_ != GgufType::kUint64) {
    return std::nullopt;
  }
  return LoadUnaligned<uint64_t>(encoded_.data());
}

std::optional<double> GgufValue::AsFloat() const {
  if (type_ == GgufType::kFloat32) {
    return static_cast<double>(LoadUnaligned<float>(encoded_.data()));
  }
  if (type_ == GgufType::kFloat64) {
    return LoadUnaligned<double>(encoded_.data());
  }
  return std::nullopt;
}

std::optional<bool> GgufValue::AsBool() const {
  if (type_ != GgufType::kBool) {
    return std::nullopt;
  }
  return encoded_[0] != 0;
}

std::optional<absl::string_view> GgufValue::AsString() const {
  if (type_ != GgufType::kString) {
    return std::nullopt;
  }
  return absl::string_view(reinterpret_cast<const char*>(encoded_.data()) + kStringHeaderBytes,
                           encoded_.size() - static_cast<size_t>(kStringHeaderBytes));
}

GgufType GgufValue::element_type() const {
  CHECK(type_ == GgufType::kArray);
  const uint32_t id = LoadUnaligned<uint32_t>(encoded_.data());
  CHECK_LT(id, kGgufTypeCount);
  return static_cast<GgufType>(id);
}

int64_t GgufValue::element_count() const {
  CHECK(type_ == GgufType::kArray);
  return LoadUnaligned<int64_t>(encoded_.data() + kArrayCountOffset);
}

GgufElements::GgufElements(const GgufValue& array)
    : type_(array.element_type()),
      elements_left_(array.element_count()),
      encoded_(array.encoded_.subspan(static_cast<size_t>(kArrayHeaderBytes))) {}

std::optional<GgufValue> GgufElements::Next() {
  if (elements_left_ <= 0) {
    return std::nullopt;
  }
  const int64_t bytes = EncodedBytes(type_, /*depth=*/1, encoded_);
  if (bytes < 0) {
    elements_left_ = 0;
    return std::nullopt;
  }
  const GgufValue element(type_, encoded_.subspan(0, static_cast<size_t>(bytes)));
  encoded_.remove_prefix(static_cast<size_t>(bytes));
  --elements_left_;
  return element;
}

absl::StatusOr<GgufValue> ReadGgufValue(absl::Span<const uint8_t> file_bytes, GgufCursor& cursor) {
  ASSIGN_OR_RETURN(const GgufType type, ReadType(cursor, "the value type"));
  const int64_t start = cursor.offset();
  RETURN_IF_ERROR(SkipValue(type, /*depth=*/0, cursor));
  return GgufValue(type, file_bytes.subspan(static_cast<size_t>(start),
                                            static_cast<size_t>(cursor.offset() - start)));
}

}  // namespace trireme::weights
