// Writes a GGUF file of version 3 from front to back (specs: ggml's gguf.md): all metadata and
// tensor records first, then the tensors' data in the order of their records.
#ifndef TRIREME_RUNTIME_WEIGHTS_GGUF_WRITER_H_
#define TRIREME_RUNTIME_WEIGHTS_GGUF_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace trireme::weights {

// Thread rule: one thread.
class GgufWriter {
 public:
  // Before Open.
  void AddString(absl::string_view key, absl::string_view value);
  void AddUint32(absl::string_view key, uint32_t value);
  void AddFloat32(absl::string_view key, float value);
  // `dimensions`: columns first. `type_id` as in ggml_type.h; the columns are whole storage blocks.
  void AddTensor(absl::string_view name, absl::Span<const int64_t> dimensions, uint32_t type_id);

  int64_t data_bytes() const { return data_bytes_; }  // of all tensors, with the gaps

  // Creates or empties the file and writes everything up to the data. Unknown with the file's name
  // and the system's reason when that fails, like the next two.
  absl::Status Open(const std::string& path);
  // More data of the tensor at hand; the next one begins when it is complete.
  absl::Status Append(absl::Span<const std::byte> data);
  // After the last tensor's data.
  absl::Status Finish();

 private:
  void AddEntry(absl::string_view key, uint32_t type, absl::string_view value);
  absl::Status Check(absl::string_view action);

  std::string entries_;
  uint64_t entry_count_ = 0;
  std::string records_;
  std::vector<int64_t> tensor_bytes_;
  int64_t data_bytes_ = 0;

  std::string path_;
  std::ofstream file_;
  size_t tensor_ = 0;    // that Append fills
  int64_t written_ = 0;  // of it
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_GGUF_WRITER_H_
