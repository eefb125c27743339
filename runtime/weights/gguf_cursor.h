// A bounded reader over the bytes of a GGUF file. It never reads past the end and never multiplies
// before it has compared, and each error names file, offset and the thing that was being read.
#ifndef TRIREME_RUNTIME_WEIGHTS_GGUF_CURSOR_H_
#define TRIREME_RUNTIME_WEIGHTS_GGUF_CURSOR_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace trireme::weights {

static_assert(std::endian::native == std::endian::little,
              "GGUF files are little-endian and are read in place");

// A number that may lie at any address.
template <typename Number>
Number LoadUnaligned(const uint8_t* from) {
  Number number;
  std::memcpy(&number, from, sizeof(Number));
  return number;
}

// Names from files may hold anything: escaped, and cut after 100 bytes, for messages and tables.
std::string PrintableName(absl::string_view name);

// Used by one thread. Views that it returns point into the bytes it was given.
class GgufCursor {
 public:
  GgufCursor(std::string file_name, absl::Span<const uint8_t> bytes);

  int64_t offset() const { return offset_; }
  int64_t bytes_left() const { return static_cast<int64_t>(bytes_.size()) - offset_; }

  // What the following fields belong to, such as `key "general.name"`; stands in every error.
  void SetSubject(std::string subject) { subject_ = std::move(subject); }

  // `what` names the field. Errors: INVALID_ARGUMENT when the file ends before the field does.
  template <typename Number>
  [[nodiscard]] absl::StatusOr<Number> ReadNumber(absl::string_view what) {
    if (bytes_left() < static_cast<int64_t>(sizeof(Number))) {
      return EndError(what, sizeof(Number));
    }
    const Number number = LoadUnaligned<Number>(bytes_.data() + offset_);
    offset_ += static_cast<int64_t>(sizeof(Number));
    return number;
  }
  // A length of 64 bits, then that many bytes; they may hold anything.
  [[nodiscard]] absl::StatusOr<absl::string_view> ReadString(absl::string_view what);
  // A count of records that take at least `least_record_bytes` each; refused when they cannot fit
  // in the rest of the file, or are more than `limit`.
  [[nodiscard]] absl::StatusOr<int64_t> ReadCount(absl::string_view what,
                                                  int64_t least_record_bytes, int64_t limit);
  [[nodiscard]] absl::Status Skip(int64_t count, absl::string_view what);

  // "FILE: at byte OFFSET: SUBJECT: TEXT".
  absl::Status Error(absl::string_view text) const { return ErrorAt(offset_, text); }
  absl::Status ErrorAt(int64_t offset, absl::string_view text) const;

 private:
  absl::Status EndError(absl::string_view what, uint64_t wanted_bytes) const;

  const std::string file_name_;
  const absl::Span<const uint8_t> bytes_;
  int64_t offset_ = 0;
  std::string subject_;
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_GGUF_CURSOR_H_
