#include "runtime/cache/kv_format.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/kernel_table.h"

namespace trireme::cache {
namespace {

struct NamedFormat {
  kernels::KeyValueFormat format;
  absl::string_view name;
};

constexpr NamedFormat kFormats[] = {
    {kernels::KeyValueFormat::kF16, "f16"},   {kernels::KeyValueFormat::kF32, "f32"},
    {kernels::KeyValueFormat::kBF16, "bf16"}, {kernels::KeyValueFormat::kInt8, "int8"},
    {kernels::KeyValueFormat::kE4M3, "fp8"},  {kernels::KeyValueFormat::kInt4, "int4"}};

}  // namespace

absl::string_view KvFormatName(kernels::KeyValueFormat format) {
  for (const NamedFormat& named : kFormats) {
    if (named.format == format) {
      return named.name;
    }
  }
  return "";
}

absl::StatusOr<kernels::KeyValueFormat> FindKvFormat(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const NamedFormat& named : kFormats) {
    if (named.name == name) {
      return named.format;
    }
    names.push_back(named.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the KV cache has no format \"", name, "\"; it must be one of ", absl::StrJoin(names, ", ")));
}

}  // namespace trireme::cache
