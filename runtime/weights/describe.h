// What `trireme inspect` prints of a model file: metadata, tensors, formats and bits per weight, as
// a text for people or as JSON for programs. The weights are not read.
#ifndef TRIREME_RUNTIME_WEIGHTS_DESCRIBE_H_
#define TRIREME_RUNTIME_WEIGHTS_DESCRIBE_H_

#include <cstdint>
#include <string>

#include "runtime/weights/checkpoint.h"
#include "runtime/weights/generation_defaults.h"
#include "runtime/weights/gguf.h"

namespace trireme::weights {

// Longer values are cut, and it is said how long they are.
struct DescribeOptions {
  int64_t max_string_bytes = 100;
  int64_t max_array_elements = 8;
};

// With `generation` its values and their sources come last ("generation" in JSON: "end_ids" and
// "sampling", each with its "source").
//
// Lines in UTF-8 that end in a line break; nothing in the file can forge a line or a terminal code.
std::string DescribeAsText(const GgufFile& file, const DescribeOptions& options = {},
                           const GenerationDefaults* generation = nullptr);

// One object: "file", "version", "alignment", "parts", "file_bytes", "metadata" (a list in file
// order of "key", "type", "value"; arrays have "element_type", "count" and their first elements as
// "value"), "tensors" (a list of "name", "dimensions" with the contiguous one first, "type",
// "type_id", "elements", "bytes", "bits_per_weight", "part", "offset"), "types" (sums per type),
// "total". Infinite floats are strings. Ends in a line break.
std::string DescribeAsJson(const GgufFile& file, const DescribeOptions& options = {},
                           const GenerationDefaults* generation = nullptr);

// The same of a checkpoint in the Hugging Face layout: its tensors by name and shape, the matrices
// that quantised tensors make, with scheme and bits per weight ("quantized" in JSON), and the
// defaults of generation.
std::string DescribeAsText(const Checkpoint& checkpoint, const GenerationDefaults& generation);
std::string DescribeAsJson(const Checkpoint& checkpoint, const GenerationDefaults& generation);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_DESCRIBE_H_
