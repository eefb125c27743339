// The key/value pairs of a GGUF file, in file order, with getters that say what is wrong: each
// error names file, key, byte offset, the value found and the one wanted. Integers of any width are
// accepted where they hold the value, because writers differ. What keys mean is not known here.
#ifndef TRIREME_RUNTIME_WEIGHTS_GGUF_METADATA_H_
#define TRIREME_RUNTIME_WEIGHTS_GGUF_METADATA_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/weights/gguf_value.h"

namespace trireme::weights {

struct GgufEntry {
  absl::string_view key;
  GgufValue value;
  int64_t offset;  // of the key, from the start of the file
};

// Both ends included.
struct IntegerRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};

// Arrays are decoded up to this many elements (the largest vocabularies have 262 144 tokens, their
// merges twice that), so that a hostile file cannot ask for memory beyond its own size.
inline constexpr int64_t kMaxDecodedElements = int64_t{1} << 21;

// Immutable; threads may read it at any time. Views point into the file's bytes.
//
// Get...: NOT_FOUND when the key is missing, INVALID_ARGUMENT when its value does not serve.
// Get...Or: the default when the key is missing, the same errors otherwise.
class GgufMetadata {
 public:
  // Errors: INVALID_ARGUMENT for a key that stands twice.
  [[nodiscard]] static absl::StatusOr<GgufMetadata> Create(std::string file_name,
                                                           std::vector<GgufEntry> entries);

  const std::string& file_name() const { return file_name_; }
  const std::vector<GgufEntry>& entries() const { return entries_; }

  const GgufEntry* Find(absl::string_view key) const;  // null when missing
  bool Has(absl::string_view key) const { return Find(key) != nullptr; }

  [[nodiscard]] absl::StatusOr<int64_t> GetInteger(absl::string_view key,
                                                   IntegerRange range = {}) const;
  [[nodiscard]] absl::StatusOr<int64_t> GetIntegerOr(absl::string_view key, int64_t absent,
                                                     IntegerRange range = {}) const;
  // Finite; from f32, f64 or any integer.
  [[nodiscard]] absl::StatusOr<double> GetFloat(absl::string_view key) const;
  [[nodiscard]] absl::StatusOr<double> GetFloatOr(absl::string_view key, double absent) const;
  [[nodiscard]] absl::StatusOr<bool> GetBool(absl::string_view key) const;
  [[nodiscard]] absl::StatusOr<bool> GetBoolOr(absl::string_view key, bool absent) const;
  // Any bytes; not always UTF-8.
  [[nodiscard]] absl::StatusOr<absl::string_view> GetString(absl::string_view key) const;
  [[nodiscard]] absl::StatusOr<absl::string_view> GetStringOr(absl::string_view key,
                                                              absl::string_view absent) const;

  // Arrays; at most kMaxDecodedElements. Empty arrays of any element type are accepted.
  [[nodiscard]] absl::StatusOr<std::vector<int64_t>> GetIntegerArray(absl::string_view key,
                                                                     IntegerRange range = {}) const;
  // f32, f64 or integers; elements may be infinite or not a number.
  [[nodiscard]] absl::StatusOr<std::vector<float>> GetFloatArray(absl::string_view key) const;
  [[nodiscard]] absl::StatusOr<std::vector<bool>> GetBoolArray(absl::string_view key) const;
  [[nodiscard]] absl::StatusOr<std::vector<absl::string_view>> GetStringArray(
      absl::string_view key) const;

  // One number a layer, from an array of that length or from one integer for all.
  [[nodiscard]] absl::StatusOr<std::vector<int64_t>> GetIntegerPerLayer(
      absl::string_view key, int64_t layers, IntegerRange range = {}) const;

  // INVALID_ARGUMENT "FILE: metadata key KEY (at byte N) TEXT", for checks that callers make.
  absl::Status Error(absl::string_view key, absl::string_view text) const;

 private:
  GgufMetadata(std::string file_name, std::vector<GgufEntry> entries,
               std::vector<int32_t> order_by_key);

  [[nodiscard]] absl::StatusOr<const GgufEntry*> Require(absl::string_view key,
                                                         absl::string_view wanted) const;
  [[nodiscard]] absl::StatusOr<const GgufEntry*> RequireArray(absl::string_view key,
                                                              absl::string_view wanted) const;
  absl::Status EntryError(const GgufEntry& entry, absl::string_view text) const;
  absl::Status TypeError(const GgufEntry& entry, absl::string_view wanted) const;

  std::string file_name_;
  std::vector<GgufEntry> entries_;
  std::vector<int32_t> order_by_key_;  // indices into entries_
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_GGUF_METADATA_H_
