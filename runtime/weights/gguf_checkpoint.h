// A checkpoint in a GGUF file, whole or in parts.
#ifndef TRIREME_RUNTIME_WEIGHTS_GGUF_CHECKPOINT_H_
#define TRIREME_RUNTIME_WEIGHTS_GGUF_CHECKPOINT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/weights/checkpoint.h"
#include "runtime/weights/gguf.h"

namespace trireme::weights {

class GgufCheckpoint final : public Checkpoint {
 public:
  // The container alone; Checkpoint::Open reads the spec.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(const std::string& path);

  const std::string& name() const override { return file_->name(); }
  const GgufFile* gguf() const override { return file_.get(); }
  absl::Status CheckUnchanged() const override { return file_->CheckUnchanged(); }

  spec::Container container() const override { return spec::Container::kGguf; }
  bool Has(absl::string_view key) const override;
  absl::StatusOr<int64_t> Integer(absl::string_view key) const override;
  absl::StatusOr<double> Float(absl::string_view key) const override;
  absl::StatusOr<bool> Bool(absl::string_view key) const override;
  absl::StatusOr<std::string> String(absl::string_view key) const override;
  absl::StatusOr<std::vector<int64_t>> Integers(absl::string_view key) const override;
  absl::StatusOr<std::vector<double>> Floats(absl::string_view key) const override;
  absl::StatusOr<std::vector<std::string>> Strings(absl::string_view key) const override;
  absl::StatusOr<int64_t> ArrayLength(absl::string_view key) const override;
  absl::Status ErrorAt(absl::string_view key, absl::string_view text) const override;

 protected:
  std::optional<FoundTensor> Find(absl::string_view tensor_name) const override;
  std::vector<absl::string_view> TensorNames() const override;
  void AddMetadata(Fingerprint* hash) const override;

 private:
  explicit GgufCheckpoint(std::unique_ptr<GgufFile> file) : file_(std::move(file)) {}

  const std::unique_ptr<GgufFile> file_;
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_GGUF_CHECKPOINT_H_
