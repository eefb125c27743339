#include "runtime/weights/gguf_cursor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"

namespace trireme::weights {

std::string PrintableName(absl::string_view name) {
  constexpr size_t kShownBytes = 100;
  absl::string_view shown = name.substr(0, kShownBytes);
  while (shown.size() < name.size() && (name[shown.size()] & 0xc0) == 0x80 && !shown.empty()) {
    shown.remove_suffix(1);  // no character is cut in two
  }
  std::string text = IsValidUtf8(shown) ? absl::Utf8SafeCEscape(shown) : absl::CEscape(shown);
  if (shown.size() < name.size()) {
    absl::StrAppend(&text, "... (", name.size(), " bytes)");
  }
  return text;
}

GgufCursor::GgufCursor(std::string file_name, absl::Span<const uint8_t> bytes)
    : file_name_(std::move(file_name)), bytes_(bytes), subject_("header") {}

absl::StatusOr<absl::string_view> GgufCursor::ReadString(absl::string_view what) {
  const int64_t start = offset_;
  if (bytes_left() < static_cast<int64_t>(sizeof(uint64_t))) {
    return EndError(absl::StrCat("the length of ", what), sizeof(uint64_t));
  }
  const uint64_t length = LoadUnaligned<uint64_t>(bytes_.data() + offset_);
  offset_ += static_cast<int64_t>(sizeof(uint64_t));
  if (length > static_cast<uint64_t>(bytes_left())) {
    return ErrorAt(start, absl::StrCat("the length of ", what, " is ", length,
                                       " bytes, beyond the end of the file: ", bytes_left(),
                                       " bytes are left; the file is truncated or damaged"));
  }
  const absl::string_view text(reinterpret_cast<const char*>(bytes_.data()) + offset_,
                               static_cast<size_t>(length));
  offset_ += static_cast<int64_t>(length);
  return text;
}

absl::StatusOr<int64_t> GgufCursor::ReadCount(absl::string_view what, int64_t least_record_bytes,
                                              int64_t limit) {
  CHECK_GT(least_record_bytes, 0);
  const int64_t start = offset_;
  ASSIGN_OR_RETURN(const uint64_t count, ReadNumber<uint64_t>(what));
  const int64_t fitting = bytes_left() / least_record_bytes;
  if (count > static_cast<uint64_t>(fitting)) {
    return ErrorAt(start,
                   absl::StrCat(what, " is ", count, ", too many: the ", bytes_left(),
                                " bytes left hold at most ", fitting, " of at least ",
                                least_record_bytes, " bytes; the file is truncated or damaged"));
  }
  if (count > static_cast<uint64_t>(limit)) {
    return ErrorAt(start, absl::StrCat(what, " is ", count, ", too many: wanted at most ", limit));
  }
  return static_cast<int64_t>(count);
}

absl::Status GgufCursor::Skip(int64_t count, absl::string_view what) {
  CHECK_GE(count, 0);
  if (count > bytes_left()) {
    return EndError(what, static_cast<uint64_t>(count));
  }
  offset_ += count;
  return absl::OkStatus();
}

absl::Status GgufCursor::ErrorAt(int64_t offset, absl::string_view text) const {
  return absl::InvalidArgumentError(
      absl::StrCat(file_name_, ": at byte ", offset, ": ", subject_, ": ", text));
}

absl::Status GgufCursor::EndError(absl::string_view what, uint64_t wanted_bytes) const {
  return Error(absl::StrCat("the file ends within ", what, ": wanted ", wanted_bytes,
                            " bytes, found ", bytes_left(),
                            " before the end of file; it is truncated, fetch it again"));
}

}  // namespace trireme::weights
