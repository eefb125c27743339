// Reads the header of one GGUF file, version 2 or 3: metadata and the list of tensors, every length
// checked before it is used. Not for split models as a whole (gguf.h), and not for what keys and
// tensors mean. Memory: at most the size of the file plus about 64 MB, whatever the file says.
#ifndef TRIREME_RUNTIME_WEIGHTS_GGUF_PARSE_H_
#define TRIREME_RUNTIME_WEIGHTS_GGUF_PARSE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/weights/ggml_type.h"
#include "runtime/weights/gguf_metadata.h"

namespace trireme::weights {

inline constexpr int kMaxGgufDimensions = 4;

struct GgufTensor {
  absl::string_view name;
  const GgmlType* type;
  int dimension_count;  // 0 for a scalar
  // [columns, rows, experts or 1, 1]: the first is contiguous. 1 beyond dimension_count.
  std::array<int64_t, kMaxGgufDimensions> dimensions;
  int64_t elements;  // may be 0
  int64_t size_bytes;
  int64_t data_offset;    // from the start of its file
  int64_t record_offset;  // where the header speaks of it, for messages
  int part_index;         // which file of a split model
};

struct GgufPart {
  uint32_t version;
  int64_t alignment;
  int64_t data_start;  // from the start of the file; its end when there are no tensors
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;  // in file order
};

// `file_name` is for messages. Views in the result point into `bytes`. Errors: INVALID_ARGUMENT
// with file, offset, what was found and what was wanted. Tensors may lie in any order and leave
// gaps, but do not overlap. Equal tensor names are found by GgufFile, over all parts.
[[nodiscard]] absl::StatusOr<GgufPart> ParseGguf(const std::string& file_name,
                                                 absl::Span<const uint8_t> bytes);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_GGUF_PARSE_H_
