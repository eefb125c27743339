// One metadata value of a GGUF file, as a view of the mapped bytes: nothing is decoded before it is
// asked for, so a vocabulary of 100 000 strings costs nothing. Terms: an array has an element type
// and a count; arrays may hold arrays, at most kMaxGgufArrayDepth deep.
#ifndef TRIREME_RUNTIME_WEIGHTS_GGUF_VALUE_H_
#define TRIREME_RUNTIME_WEIGHTS_GGUF_VALUE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/weights/gguf_cursor.h"

namespace trireme::weights {

// Numbered as in the file.
enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
inline constexpr uint32_t kGgufTypeCount = 13;

// The format's document allows arrays of arrays without saying how deep; no known model has any.
inline constexpr int kMaxGgufArrayDepth = 4;

// "u8", "f32", "string", "array", ...
const char* NameOf(GgufType type);

// Cheap to copy; valid while the file's bytes are. Threads may read it at any time.
class GgufValue {
 public:
  // `encoded` is the value as ReadGgufValue accepted it, without its type.
  GgufValue(GgufType type, absl::Span<const uint8_t> encoded) : type_(type), encoded_(encoded) {}

  GgufType type() const { return type_; }

  // Empty when the type is another. AsInteger takes every integer type, and is empty for a u64 past
  // 2^63 - 1, which AsUnsigned has.
  std::optional<int64_t> AsInteger() const;
  std::optional<uint64_t> AsUnsigned() const;  // u64 only
  std::optional<double> AsFloat() const;       // f32 and f64; may be infinite or not a number
  std::optional<bool> AsBool() const;          // any byte but 0 is true
  std::optional<absl::string_view> AsString() const;  // any bytes, not always UTF-8

  // For arrays only (CHECK).
  GgufType element_type() const;
  int64_t element_count() const;

 private:
  friend class GgufElements;

  GgufType type_;
  absl::Span<const uint8_t> encoded_;
};

// Walks over an array: while (const auto element = elements.Next()) ...
class GgufElements {
 public:
  explicit GgufElements(const GgufValue& array);  // CHECKs that it is one
  std::optional<GgufValue> Next();

 private:
  const GgufType type_;
  int64_t elements_left_;
  absl::Span<const uint8_t> encoded_;
};

// Reads the value type at the cursor and then the value, checking every length in it. Errors:
// INVALID_ARGUMENT for unknown types, lengths past the end, arrays nested too deep.
[[nodiscard]] absl::StatusOr<GgufValue> ReadGgufValue(absl::Span<const uint8_t> file_bytes,
                                                      GgufCursor& cursor);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_GGUF_VALUE_H_
