#include "runtime/weights/checkpoint.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/formats/decode.h"
#include "kernels/formats/weight_format.h"
#include "runtime/base/fingerprint.h"
#include "runtime/base/status_macros.h"
#include "runtime/spec/families.h"
#include "runtime/weights/gguf_checkpoint.h"
#include "runtime/weights/gguf_cursor.h"
#include "runtime/weights/hugging_face_checkpoint.h"

namespace trireme::weights {
namespace {

constexpr int64_t kSmallTensorValues = int64_t{1} << 20;

std::string KnownFormats() {
  std::vector<std::string> names;
  for (const kernels::WeightFormatInfo& info : kernels::kWeightFormats) {
    if (info.is_in_files) {
      names.emplace_back(info.name);
    }
  }
  return absl::StrJoin(names, ", ");
}

absl::Span<const int64_t> WithoutLeadingOnes(absl::Span<const int64_t> extents) {
  while (!extents.empty() && extents.front() == 1) {
    extents.remove_prefix(1);
  }
  return extents;
}

bool IsDirectory(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

absl::StatusOr<std::unique_ptr<Checkpoint>> OpenContainer(const std::string& path) {
  if (IsDirectory(path) || absl::EndsWith(path, ".safetensors") || absl::EndsWith(path, ".json")) {
    return HuggingFaceCheckpoint::Open(path);
  }
  return GgufCheckpoint::Open(path);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Open(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<Checkpoint> checkpoint, OpenContainer(path));
  absl::StatusOr<spec::ModelSpec> model = spec::SpecOf(*checkpoint);
  if (absl::IsNotFound(model.status())) {
    return absl::DataLossError(model.status().message());  // the file is there, its key is not
  }
  ASSIGN_OR_RETURN(checkpoint->spec_, std::move(model));
  return checkpoint;
}

double StoredTensor::StoredBytesOf(int64_t values) const {
  const double bytes = quantized != nullptr ? static_cast<double>(quantized->stored_bytes())
                                            : static_cast<double>(row_bytes * rows);
  return bytes / static_cast<double>(rows * columns) * static_cast<double>(values);
}

absl::Status StoredTensor::Decode(int64_t row, topology::Range column_range, float* values) const {
  if (quantized != nullptr) {
    return quantized->Decode({row, row + 1}, column_range, values);
  }
  kernels::DecodeRow(format, data + row * row_bytes, column_range.begin, column_range.size(),
                     values);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const QuantizedMatrix>> Checkpoint::Quantized(
    absl::string_view /*name*/, const std::optional<MatrixExtents>& /*wanted*/) const {
  return nullptr;
}

absl::StatusOr<StoredTensor> Checkpoint::Tensor(absl::string_view tensor_name,
                                                absl::Span<const int64_t> extents) const {
  if (extents.size() > 1) {
    MatrixExtents wanted{.rows = 1, .columns = extents.back()};
    for (const int64_t extent : extents.first(extents.size() - 1)) {
      wanted.rows *= extent;
    }
    ASSIGN_OR_RETURN(std::shared_ptr<const QuantizedMatrix> matrix, Quantized(tensor_name, wanted));
    if (matrix != nullptr) {
      return StoredTensor{.name = std::string(tensor_name),
                          .format = kernels::WeightFormat::kF32,
                          .rows = wanted.rows,
                          .columns = wanted.columns,
                          .quantized = std::move(matrix)};
    }
  }
  const std::optional<FoundTensor> tensor = Find(tensor_name);
  if (!tensor.has_value()) {
    return absl::NotFoundError(absl::StrCat(name(), ": tensor ", PrintableName(tensor_name),
                                            " is missing among the ", TensorNames().size(),
                                            " tensors; the file is incomplete or of another "
                                            "architecture"));
  }
  if (std::find(tensor->extents.begin(), tensor->extents.end(), 0) != tensor->extents.end()) {
    return ErrorAt(tensor_name, "has a dimension of zero, so no elements; wanted some");
  }
  if (!tensor->format.has_value()) {
    return ErrorAt(tensor_name,
                   absl::StrFormat("has type %s, which this build cannot multiply; it knows %s",
                                   tensor->type_name, KnownFormats()));
  }
  const absl::Span<const int64_t> found = WithoutLeadingOnes(tensor->extents);
  if (found != WithoutLeadingOnes(extents)) {
    std::vector<int64_t> shown(tensor->extents.begin(), tensor->extents.end());
    std::vector<int64_t> wanted(extents.begin(), extents.end());
    const bool is_gguf = container() == spec::Container::kGguf;
    if (is_gguf) {
      std::reverse(shown.begin(), shown.end());
      std::reverse(wanted.begin(), wanted.end());
    }
    return ErrorAt(tensor_name,
                   absl::StrFormat("has the shape [%s], wanted [%s]%s as the metadata says",
                                   absl::StrJoin(shown, ", "), absl::StrJoin(wanted, ", "),
                                   is_gguf ? " (columns, rows)" : ""));
  }
  const int64_t columns = tensor->extents.empty() ? 1 : tensor->extents.back();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < tensor->extents.size(); ++i) {
    rows *= tensor->extents[i];  // the container checked the product
  }
  return StoredTensor{
      .name = std::string(tensor_name),
      .format = *tensor->format,
      .rows = rows,
      .columns = columns,
      .row_bytes = kernels::StoredRowBytes(*tensor->format, columns),
      .data = reinterpret_cast<const std::byte*>(tensor->bytes.data()),
  };
}

std::vector<std::string> Checkpoint::UnusedTensors(absl::Span<const std::string> used) const {
  std::vector<std::string> sorted(used.begin(), used.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> unused;
  for (const absl::string_view tensor : TensorNames()) {
    if (!std::binary_search(sorted.begin(), sorted.end(), std::string(tensor))) {
      unused.emplace_back(tensor);
    }
  }
  return unused;
}

uint64_t Checkpoint::FingerprintValue() const {
  constexpr size_t kSampleBytes = 64;
  Fingerprint hash;
  hash.Add(spec_.family);
  AddMetadata(&hash);
  for (const absl::string_view tensor_name : TensorNames()) {
    const std::optional<FoundTensor> tensor = Find(tensor_name);
    hash.Add(tensor_name);
    hash.Add(tensor->type_name);
    for (const int64_t extent : tensor->extents) {
      hash.Add(extent);
    }
    const absl::string_view bytes(reinterpret_cast<const char*>(tensor->bytes.data()),
                                  tensor->bytes.size());
    hash.Add(bytes.substr(0, kSampleBytes));
    hash.Add(bytes.substr(bytes.size() - std::min(bytes.size(), kSampleBytes)));
  }
  return hash.value();
}

std::optional<std::vector<int64_t>> Checkpoint::TensorExtents(absl::string_view tensor_name) const {
  const std::optional<FoundTensor> tensor = Find(tensor_name);
  const auto matrix = Quantized(tensor_name, std::nullopt);
  if (matrix.ok() && *matrix != nullptr) {
    return std::vector<int64_t>{(*matrix)->extents().rows, (*matrix)->extents().columns};
  }
  return tensor.has_value() ? std::optional(tensor->extents) : std::nullopt;
}

absl::StatusOr<std::vector<float>> Checkpoint::TensorValues(absl::string_view tensor_name) const {
  const std::optional<FoundTensor> tensor = Find(tensor_name);
  if (!tensor.has_value()) {
    return absl::NotFoundError(
        absl::StrCat(name(), ": tensor ", PrintableName(tensor_name), " is missing"));
  }
  const auto values_found = static_cast<int64_t>(tensor->bytes.size() / sizeof(float));
  if (tensor->format != kernels::WeightFormat::kF32 || values_found > kSmallTensorValues) {
    return ErrorAt(tensor_name,
                   absl::StrFormat("has type %s and %d bytes; wanted F32 and at most %d values",
                                   tensor->type_name, tensor->bytes.size(), kSmallTensorValues));
  }
  std::vector<float> values(values_found);
  if (!values.empty()) {
    std::memcpy(values.data(), tensor->bytes.data(), values.size() * sizeof(float));
  }
  return values;
}

}  // namespace trireme::weights
