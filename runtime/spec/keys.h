// The hyperparameters of one model by the names that GGUF gives them without their architecture
// ("attention.head_count"), whatever the container, with range checks that name file and key.
#ifndef TRIREME_RUNTIME_SPEC_KEYS_H_
#define TRIREME_RUNTIME_SPEC_KEYS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/spec/metadata.h"

namespace trireme::spec {

// Generous bounds on what a file may claim; real models are far inside. They keep products of
// extents within int64_t.
inline constexpr int64_t kLayersMax = 4096;
inline constexpr int64_t kWidthMax = int64_t{1} << 24;
inline constexpr int64_t kPositionsMax = int64_t{1} << 30;
inline constexpr int64_t kExpertsMax = 65536;

// Immutable; the metadata outlives it.
class Keys {
 public:
  Keys(const Metadata& metadata, std::string architecture)
      : metadata_(metadata), architecture_(std::move(architecture)) {}

  const Metadata& metadata() const { return metadata_; }
  bool is_gguf() const { return metadata_.container() == Container::kGguf; }

  // The name of a key in this container: of several that config.json may use, the one that is
  // there, else the first.
  std::string Name(absl::string_view key) const;
  bool Has(absl::string_view key) const { return metadata_.Has(Name(key)); }
  absl::Status Error(absl::string_view key, absl::string_view text) const {
    return metadata_.ErrorAt(Name(key), text);
  }

  // 1 .. maximum.
  absl::StatusOr<int64_t> Extent(absl::string_view key, int64_t maximum) const;
  absl::StatusOr<int64_t> ExtentOr(absl::string_view key, int64_t maximum, int64_t fallback) const;
  // 0 .. maximum, 0 when absent.
  absl::StatusOr<int64_t> Count(absl::string_view key, int64_t maximum) const;

  // A scalar, or an array with one entry a layer.
  absl::StatusOr<std::vector<int64_t>> PerLayer(absl::string_view key, int64_t layers,
                                                int64_t maximum) const;
  // The same where all entries must be equal.
  absl::StatusOr<int64_t> Uniform(absl::string_view key, int64_t layers, int64_t maximum) const;

  // Finite and above 0; without a fallback the key must be there.
  absl::StatusOr<double> Positive(absl::string_view key, std::optional<double> fallback) const;
  absl::StatusOr<bool> Flag(absl::string_view key, bool fallback) const;
  absl::StatusOr<std::string> Text(absl::string_view key, absl::string_view fallback) const;

 private:
  absl::StatusOr<int64_t> Checked(absl::string_view key, int64_t value, int64_t minimum,
                                  int64_t maximum) const;

  const Metadata& metadata_;
  const std::string architecture_;
};

}  // namespace trireme::spec

#endif  // TRIREME_RUNTIME_SPEC_KEYS_H_
