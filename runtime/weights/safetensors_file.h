// Reads the header of one safetensors file: names, types, shapes and places of its tensors, every
// length checked before it is used; the values are mapped and not read. Not for what the tensors
// mean, nor for several files of one model (hugging_face_checkpoint.h).
#ifndef TRIREME_RUNTIME_WEIGHTS_SAFETENSORS_FILE_H_
#define TRIREME_RUNTIME_WEIGHTS_SAFETENSORS_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/formats/weight_format.h"
#include "runtime/base/mapped_file.h"

namespace trireme::weights {

struct SafetensorsDtype {
  const char* name;
  int bits;
  std::optional<kernels::WeightFormat> format;  // in which the kernels know it
};

// Null for a name that the format does not have.
const SafetensorsDtype* FindSafetensorsDtype(absl::string_view name);

struct SafetensorsEntry {
  std::string name;
  const SafetensorsDtype* dtype = nullptr;
  std::vector<int64_t> shape;  // slowest first; empty for a scalar
  int64_t begin = 0;           // from the start of the data
  int64_t end = 0;
};

// The entries of a whole file's bytes, by rising place. `file_name` is for messages. Errors:
// InvalidArgument for a header that is cut short, no JSON, or does not tile the data.
[[nodiscard]] absl::StatusOr<std::vector<SafetensorsEntry>> ParseSafetensors(
    const std::string& file_name, absl::Span<const uint8_t> bytes);

// Immutable; threads may read it at any time.
class SafetensorsFile {
 public:
  // Errors: those of MappedFile::Open and ParseSafetensors.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(const std::string& path);

  const std::string& path() const { return file_->path(); }
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }

  // At any alignment.
  absl::Span<const uint8_t> Data(const SafetensorsEntry& entry) const;

  absl::Status CheckUnchanged() const { return file_->CheckUnchanged(); }

 private:
  SafetensorsFile(std::unique_ptr<MappedFile> file, std::vector<SafetensorsEntry> entries);

  const std::unique_ptr<MappedFile> file_;
  const std::vector<SafetensorsEntry> entries_;
  int64_t data_start_ = 0;
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_SAFETENSORS_FILE_H_
