// Writes a safetensors file: a JSON header that names the tensors, then their values. The header
// comes first, so names, types and shapes are given at the start and values follow in that order,
// in pieces of any size; results larger than memory can be written as they come.
#ifndef TRIREME_RUNTIME_WEIGHTS_SAFETENSORS_H_
#define TRIREME_RUNTIME_WEIGHTS_SAFETENSORS_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace trireme::weights {

enum class SafetensorsType : uint8_t { kFloat32, kInt32 };

struct SafetensorsTensor {
  std::string name;  // UTF-8, each once
  SafetensorsType type = SafetensorsType::kFloat32;
  std::vector<int64_t> shape;  // row-major; empty for a scalar
};

// Used by one thread.
class SafetensorsWriter {
 public:
  // Starts a file beside `path`, which takes its name in Finish: nobody sees half a file, and
  // without Finish nothing is left. Errors: INVALID_ARGUMENT for names that repeat or are no UTF-8,
  // for sizes below 0 or past 2^63; otherwise what the system says of the file.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<SafetensorsWriter>> Create(
      const std::string& path, std::vector<SafetensorsTensor> tensors);

  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // The next values of the tensor that is not full yet; a piece never reaches into the next tensor
  // (CHECK, as is the type). Errors: the file cannot be written.
  [[nodiscard]] absl::Status Append(absl::Span<const float> values);
  [[nodiscard]] absl::Status Append(absl::Span<const int32_t> values);

  // Errors: FAILED_PRECONDITION when values are missing; the file cannot be written or named.
  [[nodiscard]] absl::Status Finish();

 private:
  SafetensorsWriter(std::string path, std::string partial_path, std::FILE* file,
                    std::vector<SafetensorsTensor> tensors);

  absl::Status AppendBytes(SafetensorsType type, const void* data, int64_t values);
  void SkipFullTensors();

  const std::string path_;
  const std::string partial_path_;
  const std::vector<SafetensorsTensor> tensors_;
  std::FILE* file_;  // null after Finish
  size_t tensor_index_ = 0;
  int64_t values_left_ = 0;  // of that tensor
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_SAFETENSORS_H_
