// A GGUF model file, or all parts of a split one, as one value: metadata, tensors and their bytes,
// mapped and not read. Not for what the keys and tensors mean (spec/, load_shard).
#ifndef TRIREME_RUNTIME_WEIGHTS_GGUF_H_
#define TRIREME_RUNTIME_WEIGHTS_GGUF_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/mapped_file.h"
#include "runtime/weights/gguf_metadata.h"
#include "runtime/weights/gguf_parse.h"

namespace trireme::weights {

// Immutable; threads may read it at any time. All views are valid while it lives.
class GgufFile {
 public:
  // Opens a model; for a split one `path` is the first part and the names of the others follow from
  // it. Errors: those of MappedFile::Open and ParseGguf, and INVALID_ARGUMENT or NOT_FOUND for
  // parts that are missing or do not belong together.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<GgufFile>> Open(const std::string& path);

  // The same over bytes that the caller keeps alive; never split. `name` is for messages.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<GgufFile>> FromBytes(
      const std::string& name, absl::Span<const uint8_t> bytes);

  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  // As given to Open.
  const std::string& name() const { return parts_.front().name; }
  uint32_t version() const { return parts_.front().version; }
  int64_t alignment() const { return parts_.front().alignment; }
  int part_count() const { return static_cast<int>(parts_.size()); }
  const std::string& part_name(int part_index) const { return parts_[part_index].name; }
  int64_t part_data_start(int part_index) const { return parts_[part_index].data_start; }
  int64_t file_bytes() const;  // all parts together

  // Of the first part, which carries it all.
  const GgufMetadata& metadata() const { return metadata_; }

  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // in file order
  const GgufTensor* FindTensor(absl::string_view name) const;          // null when missing
  // For tensors that a model needs. Errors: NOT_FOUND when missing, INVALID_ARGUMENT when it has
  // no elements.
  [[nodiscard]] absl::StatusOr<const GgufTensor*> GetTensor(absl::string_view name) const;

  // Rows of whole blocks, size_bytes long, at any alignment down to 1.
  absl::Span<const uint8_t> Data(const GgufTensor& tensor) const;

  // INVALID_ARGUMENT "FILE: tensor NAME (at byte N) TEXT", for checks that callers make.
  absl::Status TensorError(const GgufTensor& tensor, absl::string_view text) const;

  // FAILED_PRECONDITION when a part changed on disk since it was opened.
  [[nodiscard]] absl::Status CheckUnchanged() const;

 private:
  struct Part {
    std::string name;
    std::unique_ptr<MappedFile> file;  // null for FromBytes
    absl::Span<const uint8_t> bytes;
    uint32_t version;
    int64_t alignment;
    int64_t data_start;
  };

  explicit GgufFile(GgufMetadata metadata) : metadata_(std::move(metadata)) {}

  static absl::StatusOr<std::unique_ptr<GgufFile>> FromFirstPart(std::string name,
                                                                 std::unique_ptr<MappedFile> file,
                                                                 absl::Span<const uint8_t> bytes);
  absl::Status AddLaterParts(int64_t part_count);
  void AddPart(Part part, std::vector<GgufTensor> tensors);
  absl::Status IndexTensors();

  GgufMetadata metadata_;
  std::vector<Part> parts_;
  std::vector<GgufTensor> tensors_;
  std::vector<int32_t> order_by_name_;  // indices into tensors_
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_GGUF_H_
