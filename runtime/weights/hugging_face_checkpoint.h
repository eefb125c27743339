// A checkpoint in the Hugging Face layout: a directory with config.json, perhaps
// generation_config.json, and model.safetensors or several files with
// model.safetensors.index.json. Only the files that tensors lie in are mapped. Its matrices may be
// quantised by one of the methods of quantized/method.h.
#ifndef TRIREME_RUNTIME_WEIGHTS_HUGGING_FACE_CHECKPOINT_H_
#define TRIREME_RUNTIME_WEIGHTS_HUGGING_FACE_CHECKPOINT_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/weights/checkpoint.h"
#include "runtime/weights/json_config.h"
#include "runtime/weights/quantized/method.h"
#include "runtime/weights/safetensors_file.h"

namespace trireme::weights {

class HuggingFaceCheckpoint final : public Checkpoint, private PartSource {
 public:
  // The container alone; Checkpoint::Open reads the spec. `path` is the directory, one safetensors
  // file in it, or the index.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(const std::string& path);

  const std::string& name() const override { return path_; }
  const std::string& directory() const { return directory_; }
  const JsonConfig* generation_config() const override { return generation_.get(); }
  absl::Status CheckUnchanged() const override;
  absl::StatusOr<std::shared_ptr<const QuantizedMatrix>> Quantized(
      absl::string_view tensor_name, const std::optional<MatrixExtents>& wanted) const override;
  std::vector<std::string> QuantizedNames() const override;
  bool IsAdvisory(absl::string_view tensor_name) const override;

  spec::Container container() const override { return spec::Container::kHuggingFace; }
  bool Has(absl::string_view key) const override { return config_->Has(key); }
  absl::StatusOr<int64_t> Integer(absl::string_view key) const override {
    return config_->Integer(key);
  }
  absl::StatusOr<double> Float(absl::string_view key) const override { return config_->Float(key); }
  absl::StatusOr<bool> Bool(absl::string_view key) const override { return config_->Bool(key); }
  absl::StatusOr<std::string> String(absl::string_view key) const override {
    return config_->String(key);
  }
  absl::StatusOr<std::vector<int64_t>> Integers(absl::string_view key) const override {
    return config_->Integers(key);
  }
  absl::StatusOr<std::vector<double>> Floats(absl::string_view key) const override {
    return config_->Floats(key);
  }
  absl::StatusOr<std::vector<std::string>> Strings(absl::string_view key) const override {
    return config_->Strings(key);
  }
  absl::StatusOr<int64_t> ArrayLength(absl::string_view key) const override {
    return config_->ArrayLength(key);
  }
  absl::Status ErrorAt(absl::string_view key, absl::string_view text) const override;

 protected:
  std::optional<FoundTensor> Find(absl::string_view tensor_name) const override;
  std::vector<absl::string_view> TensorNames() const override;
  void AddMetadata(Fingerprint* hash) const override;

 private:
  struct Place {
    size_t file_index;
    size_t entry_index;
  };

  HuggingFaceCheckpoint(std::string path, std::string directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}

  std::optional<StoredPart> FindPart(absl::string_view part_name) const override;
  absl::Status PartError(absl::string_view part_name, absl::string_view text) const override;

  absl::Status ReadConfigs();
  absl::Status ReadIndex(const std::string& path);
  // Adds the file's tensors for which `is_wanted` holds.
  absl::Status AddFile(const std::string& path, const std::map<std::string, std::string>* wanted);
  void TakeTextModel();

  const std::string path_;
  const std::string directory_;
  std::unique_ptr<JsonConfig> config_;
  std::unique_ptr<JsonConfig> generation_;
  std::unique_ptr<Method> quantization_;  // null: all tensors are plain
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Place, std::less<>> tensors_;  // by the name of a text-only checkpoint
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_HUGGING_FACE_CHECKPOINT_H_
