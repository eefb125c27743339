#include "runtime/weights/gguf_writer.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/ggml_type.h"

namespace trireme::weights {
namespace {

constexpr uint32_t kVersion = 3;
constexpr int64_t kAlignment = 32;  // the format's default, so that no metadata has to say it
constexpr uint32_t kUint32 = 4;
constexpr uint32_t kFloat32 = 6;
constexpr uint32_t kString = 8;

template <typename Number>
std::string Bytes(Number number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
}

std::string Text(absl::string_view text) {
  return absl::StrCat(Bytes<uint64_t>(text.size()), text);
}

int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void GgufWriter::AddEntry(absl::string_view key, uint32_t type, absl::string_view value) {
  absl::StrAppend(&entries_, Text(key), Bytes(type), value);
  ++entry_count_;
}

void GgufWriter::AddString(absl::string_view key, absl::string_view value) {
  AddEntry(key, kString, Text(value));
}

void GgufWriter::AddUint32(absl::string_view key, uint32_t value) {
  AddEntry(key, kUint32, Bytes(value));
}

void GgufWriter::AddFloat32(absl::string_view key, float value) {
  AddEntry(key, kFloat32, Bytes(value));
}

void GgufWriter::AddTensor(absl::string_view name, absl::Span<const int64_t> dimensions,
                           uint32_t type_id) {
  const GgmlType* type = FindGgmlType(type_id);
  CHECK(type != nullptr);
  CHECK_EQ(dimensions[0] % type->block_values, 0);
  absl::StrAppend(&records_, Text(name), Bytes(static_cast<uint32_t>(dimensions.size())));
  int64_t values = 1;
  for (const int64_t dimension : dimensions) {
    absl::StrAppend(&records_, Bytes(static_cast<uint64_t>(dimension)));
    values *= dimension;
  }
  absl::StrAppend(&records_, Bytes(type_id), Bytes(static_cast<uint64_t>(data_bytes_)));
  tensor_bytes_.push_back(values / type->block_values * type->block_bytes);
  data_bytes_ += Aligned(tensor_bytes_.back());
}

absl::Status GgufWriter::Check(absl::string_view action) {
  if (file_) {
    return absl::OkStatus();
  }
  return absl::UnknownError(absl::StrCat(path_, ": cannot ", action, ": ", std::strerror(errno)));
}

absl::Status GgufWriter::Open(const std::string& path) {
  path_ = path;
  file_.open(path, std::ios::binary | std::ios::trunc);
  RETURN_IF_ERROR(Check("create"));
  const std::string head =
      absl::StrCat("GGUF", Bytes(kVersion), Bytes<uint64_t>(tensor_bytes_.size()),
                   Bytes(entry_count_), entries_, records_);
  file_ << head
        << std::string(
               static_cast<size_t>(Aligned(static_cast<int64_t>(head.size()))) - head.size(), '\0');
  return Check("write");
}

absl::Status GgufWriter::Append(absl::Span<const std::byte> data) {
  CHECK_LT(tensor_, tensor_bytes_.size());
  written_ += static_cast<int64_t>(data.size());
  CHECK_LE(written_, tensor_bytes_[tensor_]);
  file_.write(reinterpret_cast<const char*>(data.data()),
              static_cast<std::streamsize>(data.size()));
  if (written_ == tensor_bytes_[tensor_]) {
    file_ << std::string(static_cast<size_t>(Aligned(written_) - written_), '\0');
    ++tensor_;
    written_ = 0;
  }
  return Check("write");
}

absl::Status GgufWriter::Finish() {
  CHECK_EQ(tensor_, tensor_bytes_.size());
  file_.close();
  return Check("write");
}

}  // namespace trireme::weights
