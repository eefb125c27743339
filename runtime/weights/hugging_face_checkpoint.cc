#include "runtime/weights/hugging_face_checkpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/gguf_cursor.h"

namespace trireme::weights {
namespace {

constexpr int64_t kIndexBytesMax = int64_t{256} << 20;
constexpr char kIndexName[] = "model.safetensors.index.json";
constexpr char kWeightsName[] = "model.safetensors";
// Scales of quantised activations and caches, which this build keeps as they are.
constexpr const char* kAdvisorySuffixes[] = {
    ".input_scale",      ".input_global_scale",
    ".input_zero_point", ".output_scale",
    ".q_scale",          ".k_scale",
    ".v_scale",          ".kv_scale",
    ".prob_scale",
};

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

bool IsDirectory(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// A key that is missing, but not the file: NotFound speaks of files.
template <typename Value>
absl::StatusOr<Value> InFile(absl::StatusOr<Value> value) {
  if (absl::IsNotFound(value.status())) {
    return absl::InvalidArgumentError(value.status().message());
  }
  return value;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// An index names files beside it, and nothing else on this machine.
bool IsPlainName(absl::string_view name) {
  return !name.empty() && name.front() != '/' && !absl::StrContains(name, "..") &&
         !absl::StrContains(name, '\\') && !absl::StrContains(name, absl::string_view("\0", 1));
}

// The name in a checkpoint of text alone, or nothing where the tensor is of another modality of a
// wrapped model.
std::optional<std::string> TextName(absl::string_view name) {
  if (absl::ConsumePrefix(&name, "language_model.")) {
    return std::string(name);
  }
  if (absl::ConsumePrefix(&name, "model.language_model.")) {
    return absl::StrCat("model.", name);
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Checkpoint>> HuggingFaceCheckpoint::Open(const std::string& path) {
  const bool is_directory = IsDirectory(path);
  std::unique_ptr<HuggingFaceCheckpoint> checkpoint(
      new HuggingFaceCheckpoint(path, is_directory ? path : FolderOf(path)));
  const std::string folder = absl::StrCat(checkpoint->directory_, "/");
  if (!is_directory && !Exists(path)) {
    return MappedFile::Open(path).status();
  }
  RETURN_IF_ERROR(checkpoint->ReadConfigs());
  if (absl::EndsWith(path, ".index.json")) {
    RETURN_IF_ERROR(checkpoint->ReadIndex(path));
  } else if (!is_directory && absl::EndsWith(path, ".json")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": is no model; wanted a directory, a .gguf file, a .safetensors file "
                     "or a .safetensors.index.json"));
  } else if (!is_directory) {
    RETURN_IF_ERROR(checkpoint->AddFile(path, nullptr));
  } else if (Exists(folder + kIndexName)) {
    RETURN_IF_ERROR(checkpoint->ReadIndex(folder + kIndexName));
  } else if (Exists(folder + kWeightsName)) {
    RETURN_IF_ERROR(checkpoint->AddFile(folder + kWeightsName, nullptr));
  } else {
    return absl::NotFoundError(absl::StrCat(path, ": holds neither ", kIndexName, " nor ",
                                            kWeightsName,
                                            "; name the file of weights, or their folder"));
  }
  checkpoint->TakeTextModel();
  return std::unique_ptr<Checkpoint>(std::move(checkpoint));
}

absl::Status HuggingFaceCheckpoint::ReadConfigs() {
  ASSIGN_OR_RETURN(config_, JsonConfig::Read(absl::StrCat(directory_, "/config.json")));
  ASSIGN_OR_RETURN(const std::unique_ptr<JsonConfig> quantization,
                   FindQuantizationConfig(directory_, *config_));
  if (quantization != nullptr) {
    ASSIGN_OR_RETURN(quantization_, InFile(MethodOf(*quantization)));
  }
  config_->EnterIfObject("text_config");
  const std::string generation = absl::StrCat(directory_, "/generation_config.json");
  if (Exists(generation)) {
    ASSIGN_OR_RETURN(generation_, JsonConfig::Read(generation));
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceCheckpoint::ReadIndex(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  if (file->size_bytes() > kIndexBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is ", file->size_bytes(), " bytes long; an index has at most ", kIndexBytesMax));
  }
  const nlohmann::json index =
      nlohmann::json::parse(file->bytes().begin(), file->bytes().end(), nullptr,
                            /*allow_exceptions=*/false);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is no index; wanted a JSON object with weight_map"));
  }
  std::map<std::string, std::string> file_of;  // by tensor
  std::map<std::string, bool> files;
  for (const auto& [tensor, value] : map->items()) {
    if (!value.is_string() || !IsPlainName(value.get<std::string>())) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": weight_map of ", PrintableName(tensor),
                       " names no file beside the index; wanted a plain file name"));
    }
    file_of[tensor] = value.get<std::string>();
    files[value.get<std::string>()] = true;
  }
  for (const auto& [name, unused] : files) {
    RETURN_IF_ERROR(AddFile(absl::StrCat(FolderOf(path), "/", name), &file_of));
  }
  for (const auto& [tensor, name] : file_of) {
    if (tensors_.find(tensor) == tensors_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": weight_map puts ", PrintableName(tensor), " into ",
                       PrintableName(name), ", which does not hold it"));
    }
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceCheckpoint::AddFile(const std::string& path,
                                            const std::map<std::string, std::string>* wanted) {
  ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsFile> file, SafetensorsFile::Open(path));
  for (size_t i = 0; i < file->entries().size(); ++i) {
    const SafetensorsEntry& entry = file->entries()[i];
    if (wanted != nullptr) {
      const auto found = wanted->find(entry.name);
      if (found == wanted->end() || !absl::EndsWith(path, absl::StrCat("/", found->second))) {
        continue;  // the index does not speak of it
      }
    }
    tensors_[entry.name] = {.file_index = files_.size(), .entry_index = i};
  }
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

void HuggingFaceCheckpoint::TakeTextModel() {
  std::map<std::string, Place, std::less<>> text;
  for (const auto& [tensor, place] : tensors_) {
    if (const std::optional<std::string> name = TextName(tensor)) {
      text[*name] = place;
    }
  }
  if (text.empty()) {
    return;
  }
  if (const auto head = tensors_.find("lm_head.weight"); head != tensors_.end()) {
    text.emplace(head->first, head->second);
  }
  tensors_ = std::move(text);
}

std::optional<Checkpoint::FoundTensor> HuggingFaceCheckpoint::Find(
    absl::string_view tensor_name) const {
  const auto found = tensors_.find(tensor_name);
  if (found == tensors_.end()) {
    return std::nullopt;
  }
  const SafetensorsFile& file = *files_[found->second.file_index];
  const SafetensorsEntry& entry = file.entries()[found->second.entry_index];
  return FoundTensor{.type_name = entry.dtype->name,
                     .format = entry.dtype->format,
                     .extents = entry.shape,
                     .bytes = file.Data(entry)};
}

std::optional<StoredPart> HuggingFaceCheckpoint::FindPart(absl::string_view part_name) const {
  const std::optional<FoundTensor> tensor = Find(part_name);
  if (!tensor.has_value()) {
    return std::nullopt;
  }
  return StoredPart{.name = std::string(part_name),
                    .dtype = tensor->type_name,
                    .extents = tensor->extents,
                    .bytes = tensor->bytes};
}

absl::Status HuggingFaceCheckpoint::PartError(absl::string_view part_name,
                                              absl::string_view text) const {
  const auto found = tensors_.find(part_name);
  return absl::InvalidArgumentError(
      absl::StrCat(found == tensors_.end() ? path_ : files_[found->second.file_index]->path(),
                   ": tensor ", PrintableName(part_name), " ", text));
}

absl::StatusOr<std::shared_ptr<const QuantizedMatrix>> HuggingFaceCheckpoint::Quantized(
    absl::string_view tensor_name, const std::optional<MatrixExtents>& wanted) const {
  if (quantization_ == nullptr) {
    return nullptr;
  }
  absl::string_view module = tensor_name;
  absl::ConsumeSuffix(&module, ".weight");
  return InFile(quantization_->Read(ModuleTensors(*this, std::string(module)), wanted));
}

std::vector<std::string> HuggingFaceCheckpoint::QuantizedNames() const {
  std::vector<std::string> names;
  for (const auto& [tensor, place] : tensors_) {
    absl::string_view stem = tensor;
    if (absl::ConsumeSuffix(&stem, "_blocks")) {
      names.emplace_back(stem);
    } else if (absl::ConsumeSuffix(&stem, ".qweight") ||
               absl::ConsumeSuffix(&stem, ".weight_packed") ||
               absl::ConsumeSuffix(&stem, ".weight")) {
      names.push_back(absl::StrCat(stem, ".weight"));
    }
  }
  const auto is_plain = [this](const std::string& name) {
    const auto matrix = Quantized(name, std::nullopt);
    return matrix.ok() && *matrix == nullptr;
  };
  names.erase(std::remove_if(names.begin(), names.end(), is_plain), names.end());
  return names;
}

bool HuggingFaceCheckpoint::IsAdvisory(absl::string_view tensor_name) const {
  if (quantization_ == nullptr) {
    return false;
  }
  return std::any_of(std::begin(kAdvisorySuffixes), std::end(kAdvisorySuffixes),
                     [&](const char* suffix) { return absl::EndsWith(tensor_name, suffix); });
}

std::vector<absl::string_view> HuggingFaceCheckpoint::TensorNames() const {
  std::vector<absl::string_view> names;
  for (const auto& [tensor, place] : tensors_) {
    names.push_back(tensor);
  }
  return names;
}

void HuggingFaceCheckpoint::AddMetadata(Fingerprint* hash) const { hash->Add(config_->text()); }

absl::Status HuggingFaceCheckpoint::CheckUnchanged() const {
  for (const std::unique_ptr<SafetensorsFile>& file : files_) {
    RETURN_IF_ERROR(file->CheckUnchanged());
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceCheckpoint::ErrorAt(absl::string_view key, absl::string_view text) const {
  const auto found = tensors_.find(key);
  if (found == tensors_.end()) {
    return config_->Error(key, text);
  }
  return absl::InvalidArgumentError(absl::StrCat(files_[found->second.file_index]->path(),
                                                 ": tensor ", PrintableName(key), " ", text));
}

}  // namespace trireme::weights
