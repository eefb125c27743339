#include "runtime/weights/gguf.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace trireme::weights {
namespace {

constexpr absl::string_view kSplitNumberKey = "split.no";
constexpr absl::string_view kSplitCountKey = "split.count";
constexpr absl::string_view kSplitTensorsKey = "split.tensors.count";

// The names write five digits.
constexpr int64_t kMaxParts = 99999;

// `part_index` counts from 0, the names from 1.
std::string PartSuffix(int64_t part_index, int64_t part_count) {
  return absl::StrFormat("-%05d-of-%05d.gguf", part_index + 1, part_count);
}

// Adds what was being done, and keeps the kind of error.
absl::Status WithContext(const absl::Status& status, absl::string_view context) {
  return absl::Status(status.code(), absl::StrCat(status.message(), " (", context, ")"));
}

absl::StatusOr<int64_t> PartCountOf(const GgufMetadata& metadata) {
  return metadata.GetIntegerOr(kSplitCountKey, 1, IntegerRange{.min = 0, .max = kMaxParts});
}

// That the file which stands for part `part_index` says so itself.
absl::Status CheckPart(const GgufMetadata& metadata, int64_t part_index, int64_t part_count) {
  ASSIGN_OR_RETURN(const int64_t number, metadata.GetInteger(kSplitNumberKey));
  if (number != part_index) {
    return metadata.Error(kSplitNumberKey, absl::StrCat("is ", number, ", wanted ", part_index,
                                                        ": by its name this "
                                                        "file is part ",
                                                        part_index + 1, " of ", part_count));
  }
  ASSIGN_OR_RETURN(const int64_t count, metadata.GetInteger(kSplitCountKey));
  if (count != part_count) {
    return metadata.Error(kSplitCountKey, absl::StrCat("is ", count, ", wanted ", part_count,
                                                       " as in the first part"));
  }
  return absl::OkStatus();
}

// What stands before "-00001-of-....gguf" in the name of the first part.
absl::StatusOr<std::string> PartPrefix(const GgufMetadata& metadata, int64_t part_count) {
  const std::string& name = metadata.file_name();
  ASSIGN_OR_RETURN(const int64_t number, metadata.GetInteger(kSplitNumberKey));
  const std::string first_suffix = PartSuffix(0, part_count);
  if (number != 0) {
    return metadata.Error(kSplitNumberKey,
                          absl::StrCat("is ", number, ", wanted 0: this is part ", number + 1,
                                       " of a split model; open its first part, whose name ends "
                                       "in ",
                                       first_suffix));
  }
  absl::string_view prefix = name;
  if (!absl::ConsumeSuffix(&prefix, first_suffix)) {
    return metadata.Error(kSplitCountKey,
                          absl::StrCat("is ", part_count, ", wanted a file name that ends in ",
                                       first_suffix, "; give all parts their first names back"));
  }
  return std::string(prefix);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  const absl::Span<const uint8_t> bytes = file->bytes();
  ASSIGN_OR_RETURN(std::unique_ptr<GgufFile> result, FromFirstPart(path, std::move(file), bytes));
  ASSIGN_OR_RETURN(const int64_t part_count, PartCountOf(result->metadata()));
  if (part_count > 1) {
    RETURN_IF_ERROR(result->AddLaterParts(part_count));
  }
  RETURN_IF_ERROR(result->IndexTensors());
  return result;
}

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::FromBytes(const std::string& name,
                                                              absl::Span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(std::unique_ptr<GgufFile> result, FromFirstPart(name, nullptr, bytes));
  RETURN_IF_ERROR(result->IndexTensors());
  return result;
}

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::FromFirstPart(std::string name,
                                                                  std::unique_ptr<MappedFile> file,
                                                                  absl::Span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(GgufPart parsed, ParseGguf(name, bytes));
  std::unique_ptr<GgufFile> result(new GgufFile(std::move(parsed.metadata)));
  result->AddPart(Part{.name = std::move(name),
                       .file = std::move(file),
                       .bytes = bytes,
                       .version = parsed.version,
                       .alignment = parsed.alignment,
                       .data_start = parsed.data_start},
                  std::move(parsed.tensors));
  return result;
}

absl::Status GgufFile::AddLaterParts(int64_t part_count) {
  ASSIGN_OR_RETURN(const std::string prefix, PartPrefix(metadata_, part_count));
  for (int64_t part_index = 1; part_index < part_count; ++part_index) {
    std::string part_name = absl::StrCat(prefix, PartSuffix(part_index, part_count));
    const std::string context =
        absl::StrCat("part ", part_index + 1, " of ", part_count, " of the split model ", name());
    absl::StatusOr<std::unique_ptr<MappedFile>> file = MappedFile::Open(part_name);
    if (!file.ok()) {
      return WithContext(file.status(), context);
    }
    const absl::Span<const uint8_t> bytes = (*file)->bytes();
    absl::StatusOr<GgufPart> parsed = ParseGguf(part_name, bytes);
    if (!parsed.ok()) {
      return WithContext(parsed.status(), context);
    }
    if (const absl::Status status = CheckPart(parsed->metadata, part_index, part_count);
        !status.ok()) {
      return WithContext(status, context);
    }
    AddPart(Part{.name = std::move(part_name),
                 .file = *std::move(file),
                 .bytes = bytes,
                 .version = parsed->version,
                 .alignment = parsed->alignment,
                 .data_start = parsed->data_start},
            std::move(parsed->tensors));
  }
  const int64_t found = static_cast<int64_t>(tensors_.size());
  ASSIGN_OR_RETURN(const int64_t expected, metadata_.GetIntegerOr(kSplitTensorsKey, found));
  if (expected != found) {
    return metadata_.Error(kSplitTensorsKey, absl::StrCat("is ", expected, ", but the ", part_count,
                                                          " parts have ", found,
                                                          " tensors; a part is of another "
                                                          "model or incomplete"));
  }
  return absl::OkStatus();
}

void GgufFile::AddPart(Part part, std::vector<GgufTensor> tensors) {
  const int part_index = static_cast<int>(parts_.size());
  for (GgufTensor& tensor : tensors) {
    tensor.part_index = part_index;
  }
  parts_.push_back(std::move(part));
  if (tensors_.empty()) {
    tensors_ = std::move(tensors);
  } else {
    tensors_.insert(tensors_.end(), tensors.begin(), tensors.end());
  }
}

absl::Status GgufFile::IndexTensors() {
  order_by_name_.resize(tensors_.size());
  std::iota(order_by_name_.begin(), order_by_name_.end(), 0);
  std::stable_sort(order_by_name_.begin(), order_by_name_.end(),
                   [this](int32_t a, int32_t b) { return tensors_[a].name < tensors_[b].name; });
  for (size_t i = 1; i < order_by_name_.size(); ++i) {
    const GgufTensor& first = tensors_[order_by_name_[i - 1]];
    const GgufTensor& second = tensors_[order_by_name_[i]];
    if (first.name == second.name) {
      return TensorError(
          second, absl::StrCat("is a duplicate: it stands at byte ", first.record_offset, " of ",
                               parts_[first.part_index].name, " too; wanted each name once"));
    }
  }
  return absl::OkStatus();
}

int64_t GgufFile::file_bytes() const {
  int64_t total = 0;
  for (const Part& part : parts_) {
    total += static_cast<int64_t>(part.bytes.size());
  }
  return total;
}

const GgufTensor* GgufFile::FindTensor(absl::string_view name) const {
  const auto found = std::lower_bound(
      order_by_name_.begin(), order_by_name_.end(), name,
      [this](int32_t index, absl::string_view wanted) { return tensors_[index].name < wanted; });
  if (found == order_by_name_.end() || tensors_[*found].name != name) {
    return nullptr;
  }
  return &tensors_[*found];
}

absl::StatusOr<const GgufTensor*> GgufFile::GetTensor(absl::string_view tensor_name) const {
  const GgufTensor* const tensor = FindTensor(tensor_name);
  if (tensor == nullptr) {
    return absl::NotFoundError(absl::StrCat(name(), ": tensor ", PrintableName(tensor_name),
                                            " is missing among the ", tensors_.size(),
                                            " tensors; the file is incomplete or of another "
                                            "architecture"));
  }
  if (tensor->elements == 0) {
    return TensorError(*tensor, "has a dimension of zero, so no elements; wanted some");
  }
  return tensor;
}

absl::Span<const uint8_t> GgufFile::Data(const GgufTensor& tensor) const {
  return parts_[tensor.part_index].bytes.subspan(static_cast<size_t>(tensor.data_offset),
                                                 static_cast<size_t>(tensor.size_bytes));
}

absl::Status GgufFile::TensorError(const GgufTensor& tensor, absl::string_view text) const {
  return absl::InvalidArgumentError(absl::StrCat(parts_[tensor.part_index].name, ": tensor ",
                                                 PrintableName(tensor.name), " (at byte ",
                                                 tensor.record_offset, ") ", text));
}

absl::Status GgufFile::CheckUnchanged() const {
  for (const Part& part : parts_) {
    if (part.file != nullptr) {
      RETURN_IF_ERROR(part.file->CheckUnchanged());
    }
  }
  return absl::OkStatus();
}

}  // namespace trireme::weights
