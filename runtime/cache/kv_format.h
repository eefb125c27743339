// The names of the KV cache's formats, as flags and topology files spell them.
#ifndef TRIREME_RUNTIME_CACHE_KV_FORMAT_H_
#define TRIREME_RUNTIME_CACHE_KV_FORMAT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/kernel_table.h"

namespace trireme::cache {

// "f16", "f32", "bf16", "int8", "fp8", "int4".
absl::string_view KvFormatName(kernels::KeyValueFormat format);

// InvalidArgument with all names for any other.
absl::StatusOr<kernels::KeyValueFormat> FindKvFormat(absl::string_view name);

}  // namespace trireme::cache

#endif  // TRIREME_RUNTIME_CACHE_KV_FORMAT_H_
