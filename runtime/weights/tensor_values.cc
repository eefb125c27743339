#include "runtime/weights/tensor_values.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/gguf_cursor.h"
#include "runtime/weights/safetensors.h"

namespace trireme::weights {
namespace {

// A name that holds the number of an expert, without it.
struct ExpertName {
  std::string stacked;
  int64_t index = 0;
};

std::optional<ExpertName> ExpertOf(const std::string& name) {
  constexpr char kExperts[] = ".experts.";
  const size_t place = name.find(kExperts);
  const size_t first = place + sizeof(kExperts) - 1;
  const size_t end = place == std::string::npos ? place : name.find('.', first);
  ExpertName expert;
  if (end == std::string::npos ||
      !absl::SimpleAtoi(absl::string_view(name).substr(first, end - first), &expert.index)) {
    return std::nullopt;
  }
  expert.stacked = absl::StrCat(name.substr(0, first), name.substr(end + 1));
  return expert;
}

// Null where `name` is no part of a quantised matrix of several experts.
absl::StatusOr<std::optional<TensorRows>> FindExpert(const Checkpoint& checkpoint,
                                                     const std::string& name) {
  const std::optional<ExpertName> expert = ExpertOf(name);
  if (!expert.has_value()) {
    return std::nullopt;
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const QuantizedMatrix> matrix,
                   checkpoint.Quantized(expert->stacked, std::nullopt));
  if (matrix == nullptr) {
    return std::nullopt;
  }
  const MatrixExtents extents = matrix->extents();
  const int64_t experts = checkpoint.TensorExtents(matrix->part_names().front())->front();
  if (expert->index < 0 || expert->index >= experts) {
    return checkpoint.ErrorAt(
        name, absl::StrCat("is not there: the layer has ", experts, " experts, counted from 0"));
  }
  ASSIGN_OR_RETURN(StoredTensor stored,
                   checkpoint.Tensor(expert->stacked, extents.rows, extents.columns));
  const int64_t rows = extents.rows / experts;
  return TensorRows{.stored = std::move(stored),
                    .rows = {expert->index * rows, (expert->index + 1) * rows},
                    .extents = {rows, extents.columns}};
}

}  // namespace

absl::StatusOr<TensorRows> FindTensorRows(const Checkpoint& checkpoint, const std::string& name) {
  RETURN_IF_ERROR(checkpoint.Quantized(name, std::nullopt).status());
  const std::optional<std::vector<int64_t>> extents = checkpoint.TensorExtents(name);
  if (!extents.has_value()) {
    ASSIGN_OR_RETURN(std::optional<TensorRows> expert, FindExpert(checkpoint, name));
    if (expert.has_value()) {
      return *std::move(expert);
    }
    return absl::InvalidArgumentError(
        absl::StrCat(checkpoint.name(), ": tensor ", PrintableName(name),
                     " is not among the tensors; trireme inspect lists them"));
  }
  ASSIGN_OR_RETURN(StoredTensor stored, checkpoint.Tensor(name, *extents));
  const int64_t rows = stored.rows;
  return TensorRows{.stored = std::move(stored), .rows = {0, rows}, .extents = *extents};
}

absl::Status WriteTensorValues(const TensorRows& tensor, const std::string& name,
                               const std::string& path) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<SafetensorsWriter> writer,
      SafetensorsWriter::Create(
          path, {{.name = name, .type = SafetensorsType::kFloat32, .shape = tensor.extents}}));
  std::vector<float> values(static_cast<size_t>(tensor.stored.columns));
  for (int64_t row = tensor.rows.begin; row < tensor.rows.end; ++row) {
    RETURN_IF_ERROR(tensor.stored.Decode(row, {0, tensor.stored.columns}, values.data()));
    RETURN_IF_ERROR(writer->Append(absl::MakeConstSpan(values)));
  }
  return writer->Finish();
}

}  // namespace trireme::weights
