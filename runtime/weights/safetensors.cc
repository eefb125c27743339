#include "runtime/weights/safetensors.h"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"
#include "runtime/weights/gguf_cursor.h"

namespace trireme::weights {
namespace {

// Both types have four bytes a value.
constexpr int64_t kValueBytes = 4;
static_assert(sizeof(float) == kValueBytes && sizeof(int32_t) == kValueBytes);
static_assert(std::endian::native == std::endian::little, "values are written as they lie");

const char* NameOf(SafetensorsType type) {
  return type == SafetensorsType::kFloat32 ? "F32" : "I32";
}

absl::Status SystemError(const std::string& path, absl::string_view action) {
  return absl::InternalError(absl::StrCat(path, ": cannot ", action, ": ", std::strerror(errno),
                                          "; check the folder, its rights and the free space"));
}

absl::StatusOr<int64_t> ElementsOf(const SafetensorsTensor& tensor) {
  int64_t elements = 1;
  for (const int64_t extent : tensor.shape) {
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", PrintableName(tensor.name), ": an extent of ", extent,
                       " is negative or makes the tensor too large for 64 bits"));
    }
  }
  return elements;
}

absl::StatusOr<std::string> HeaderOf(const std::vector<SafetensorsTensor>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  int64_t begin = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    if (!IsValidUtf8(tensor.name) || tensor.name == "__metadata__" ||
        header.contains(tensor.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor name \"", PrintableName(tensor.name),
                       "\" is no UTF-8, reserved, or used twice; wanted a name of its own"));
    }
    ASSIGN_OR_RETURN(const int64_t elements, ElementsOf(tensor));
    int64_t end = 0;
    if (__builtin_mul_overflow(elements, kValueBytes, &end) ||
        __builtin_add_overflow(begin, end, &end)) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", PrintableName(tensor.name),
                                                     ": the file would be too large for 64 bits"));
    }
    header[tensor.name] = {
        {"dtype", NameOf(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  // The reference writer pads so that the values start at a multiple of 8.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    const std::string& path, std::vector<SafetensorsTensor> tensors) {
  ASSIGN_OR_RETURN(const std::string header, HeaderOf(tensors));
  std::string partial_path = absl::StrCat(path, ".", ::getpid(), ".partial");
  std::FILE* const file = std::fopen(partial_path.c_str(), "wbe");
  if (file == nullptr) {
    return SystemError(partial_path, "create the file");
  }
  std::unique_ptr<SafetensorsWriter> writer(
      new SafetensorsWriter(path, std::move(partial_path), file, std::move(tensors)));
  const uint64_t header_bytes = header.size();
  if (std::fwrite(&header_bytes, sizeof(header_bytes), 1, file) != 1 ||
      std::fwrite(header.data(), 1, header.size(), file) != header.size()) {
    return SystemError(writer->partial_path_, "write the header");
  }
  return writer;
}

SafetensorsWriter::SafetensorsWriter(std::string path, std::string partial_path, std::FILE* file,
                                     std::vector<SafetensorsTensor> tensors)
    : path_(std::move(path)),
      partial_path_(std::move(partial_path)),
      tensors_(std::move(tensors)),
      file_(file) {
  if (!tensors_.empty()) {
    values_left_ = *ElementsOf(tensors_.front());
  }
  SkipFullTensors();
}

SafetensorsWriter::~SafetensorsWriter() {
  if (file_ != nullptr) {
    std::fclose(file_);
    ::unlink(partial_path_.c_str());
  }
}

absl::Status SafetensorsWriter::Append(absl::Span<const float> values) {
  return AppendBytes(SafetensorsType::kFloat32, values.data(), static_cast<int64_t>(values.size()));
}

absl::Status SafetensorsWriter::Append(absl::Span<const int32_t> values) {
  return AppendBytes(SafetensorsType::kInt32, values.data(), static_cast<int64_t>(values.size()));
}

absl::Status SafetensorsWriter::AppendBytes(SafetensorsType type, const void* data,
                                            int64_t values) {
  if (values == 0) {
    return absl::OkStatus();
  }
  CHECK(file_ != nullptr);
  CHECK_LT(tensor_index_, tensors_.size());
  CHECK(type == tensors_[tensor_index_].type);
  CHECK_LE(values, values_left_);
  if (std::fwrite(data, kValueBytes, static_cast<size_t>(values), file_) !=
      static_cast<size_t>(values)) {
    return SystemError(partial_path_, "write the values");
  }
  values_left_ -= values;
  SkipFullTensors();
  return absl::OkStatus();
}

void SafetensorsWriter::SkipFullTensors() {
  while (values_left_ == 0 && tensor_index_ < tensors_.size()) {
    ++tensor_index_;
    if (tensor_index_ < tensors_.size()) {
      values_left_ = *ElementsOf(tensors_[tensor_index_]);
    }
  }
}

absl::Status SafetensorsWriter::Finish() {
  CHECK(file_ != nullptr);
  if (tensor_index_ < tensors_.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": tensor ", PrintableName(tensors_[tensor_index_].name),
                     " still lacks ", values_left_, " values; the file is not kept"));
  }
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  if (!closed || std::rename(partial_path_.c_str(), path_.c_str()) != 0) {
    const absl::Status status = SystemError(path_, "write the file");
    ::unlink(partial_path_.c_str());
    return status;
  }
  return absl::OkStatus();
}

}  // namespace trireme::weights
