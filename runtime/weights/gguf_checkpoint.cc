#include "runtime/weights/gguf_checkpoint.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/ggml_type.h"

namespace trireme::weights {

absl::StatusOr<std::unique_ptr<Checkpoint>> GgufCheckpoint::Open(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<GgufFile> file, GgufFile::Open(path));
  return std::unique_ptr<Checkpoint>(new GgufCheckpoint(std::move(file)));
}

std::optional<Checkpoint::FoundTensor> GgufCheckpoint::Find(absl::string_view tensor_name) const {
  const GgufTensor* const tensor = file_->FindTensor(tensor_name);
  if (tensor == nullptr) {
    return std::nullopt;
  }
  return FoundTensor{
      .type_name = tensor->type->name,
      .format = WeightFormatOf(tensor->type->id),
      .extents = std::vector<int64_t>(tensor->dimensions.rend() - tensor->dimension_count,
                                      tensor->dimensions.rend()),
      .bytes = file_->Data(*tensor)};
}

std::vector<absl::string_view> GgufCheckpoint::TensorNames() const {
  std::vector<absl::string_view> names;
  for (const GgufTensor& tensor : file_->tensors()) {
    names.push_back(tensor.name);
  }
  return names;
}

void GgufCheckpoint::AddMetadata(Fingerprint* hash) const {
  for (const GgufEntry& entry : file_->metadata().entries()) {
    hash->Add(entry.key);
    if (const std::optional<absl::string_view> text = entry.value.AsString()) {
      hash->Add(*text);
    } else if (const std::optional<int64_t> integer = entry.value.AsInteger()) {
      hash->Add(*integer);
    }
  }
}

bool GgufCheckpoint::Has(absl::string_view key) const { return file_->metadata().Has(key); }

absl::StatusOr<int64_t> GgufCheckpoint::Integer(absl::string_view key) const {
  return file_->metadata().GetInteger(key);
}

absl::StatusOr<double> GgufCheckpoint::Float(absl::string_view key) const {
  return file_->metadata().GetFloat(key);
}

absl::StatusOr<bool> GgufCheckpoint::Bool(absl::string_view key) const {
  return file_->metadata().GetBool(key);
}

absl::StatusOr<std::string> GgufCheckpoint::String(absl::string_view key) const {
  ASSIGN_OR_RETURN(const absl::string_view text, file_->metadata().GetString(key));
  return std::string(text);
}

absl::StatusOr<std::vector<int64_t>> GgufCheckpoint::Integers(absl::string_view key) const {
  const GgufEntry* const entry = file_->metadata().Find(key);
  if (entry == nullptr || entry->value.type() != GgufType::kArray) {
    ASSIGN_OR_RETURN(const int64_t value, file_->metadata().GetInteger(key));
    return std::vector<int64_t>{value};
  }
  if (entry->value.element_type() == GgufType::kBool) {
    ASSIGN_OR_RETURN(const std::vector<bool> flags, file_->metadata().GetBoolArray(key));
    return std::vector<int64_t>(flags.begin(), flags.end());
  }
  return file_->metadata().GetIntegerArray(key);
}

absl::StatusOr<std::vector<double>> GgufCheckpoint::Floats(absl::string_view key) const {
  ASSIGN_OR_RETURN(const std::vector<float> values, file_->metadata().GetFloatArray(key));
  return std::vector<double>(values.begin(), values.end());
}

absl::StatusOr<std::vector<std::string>> GgufCheckpoint::Strings(absl::string_view key) const {
  ASSIGN_OR_RETURN(const std::vector<absl::string_view> values,
                   file_->metadata().GetStringArray(key));
  return std::vector<std::string>(values.begin(), values.end());
}

absl::StatusOr<int64_t> GgufCheckpoint::ArrayLength(absl::string_view key) const {
  const GgufEntry* const entry = file_->metadata().Find(key);
  if (entry == nullptr) {
    return absl::NotFoundError(absl::StrCat(name(), ": metadata key ", key, " is missing"));
  }
  if (entry->value.type() != GgufType::kArray) {
    return ErrorAt(key,
                   absl::StrCat("has type ", NameOf(entry->value.type()), ", wanted an array"));
  }
  return entry->value.element_count();
}

absl::Status GgufCheckpoint::ErrorAt(absl::string_view key, absl::string_view text) const {
  if (file_->metadata().Has(key)) {
    return file_->metadata().Error(key, text);
  }
  if (const GgufTensor* const tensor = file_->FindTensor(key)) {
    return file_->TensorError(*tensor, text);
  }
  return absl::InvalidArgumentError(absl::StrCat(name(), ": ", key, " ", text));
}

}  // namespace trireme::weights
