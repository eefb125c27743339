// The manifest of a checkpoint: a file SHA256SUMS beside the weights with lines as sha256sum writes
// them ("sha256sum * > SHA256SUMS" makes one). It tells files that were damaged on their way; it is
// no signature, since whoever can change the files can change it too.
#ifndef TRIREME_RUNTIME_WEIGHTS_MANIFEST_H_
#define TRIREME_RUNTIME_WEIGHTS_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/weights/load_shard.h"

namespace trireme::weights {

inline constexpr char kManifestName[] = "SHA256SUMS";

struct ManifestEntry {
  std::string name;    // of a file in the manifest's folder or below
  std::string sha256;  // 64 hexadecimal digits in lower case
};

// Errors (InvalidArgument), with the line: no hash and name; a name that is absolute or leaves the
// folder; a name that is there twice; no line at all.
absl::StatusOr<std::vector<ManifestEntry>> ParseManifest(absl::string_view text);

struct ManifestReport {
  int64_t files = 0;  // that were read
  int64_t bytes = 0;
  std::vector<std::string> faults;  // a line for each file that differs, is missing or not listed
};

// Reads the files of `folder` that its manifest lists and compares their hashes. `names`: only
// these (none: all, and every *.safetensors and *.gguf of the folder must be listed). Errors:
// NotFound without a manifest; those of ParseManifest with the manifest's path.
absl::StatusOr<ManifestReport> CheckManifest(const std::string& folder,
                                             const std::vector<std::string>& names,
                                             const LoadProgress& progress);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_MANIFEST_H_
