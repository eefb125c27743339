// The tensor types of GGUF files by number: name, values and bytes of one storage block. All types
// that exist are here, so that any file can be listed; only those with a WeightFormat can be
// multiplied (kernels/formats). Pure data; threads may read it at any time.
#ifndef TRIREME_RUNTIME_WEIGHTS_GGML_TYPE_H_
#define TRIREME_RUNTIME_WEIGHTS_GGML_TYPE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/formats/weight_format.h"

namespace trireme::weights {

struct GgmlType {
  uint32_t id;
  const char* name;
  int block_values;  // values in one storage block; a row is a whole number of them
  int block_bytes;
};

// Every type, by rising id.
absl::Span<const GgmlType> AllGgmlTypes();

// Null for an id that was never given, or was taken back (4, 5, 31 to 33, 36 to 38).
const GgmlType* FindGgmlType(uint32_t id);

// The format in which the kernels know this type; empty when they do not.
std::optional<kernels::WeightFormat> WeightFormatOf(uint32_t ggml_type_id);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_GGML_TYPE_H_
