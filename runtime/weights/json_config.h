// A small JSON file of settings (config.json, generation_config.json) by dotted keys:
// "rope_scaling.factor" is the member of an object. A null counts as absent. Errors name the file,
// the key, the value found and the one wanted.
#ifndef TRIREME_RUNTIME_WEIGHTS_JSON_CONFIG_H_
#define TRIREME_RUNTIME_WEIGHTS_JSON_CONFIG_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace trireme::weights {

// Immutable; threads may read it at any time.
class JsonConfig {
 public:
  // At most kFileBytesMax, an object. Errors: those of MappedFile::Open; InvalidArgument for what
  // is no JSON object.
  static absl::StatusOr<std::unique_ptr<JsonConfig>> Read(const std::string& path);
  static absl::StatusOr<std::unique_ptr<JsonConfig>> Parse(const std::string& path,
                                                           std::string text);

  ~JsonConfig();

  const std::string& path() const { return path_; }
  const std::string& text() const { return *text_; }

  // Reads further keys inside the object of this key, where there is one ("text_config").
  void EnterIfObject(absl::string_view key);

  // The object of this key as settings of their own, whose errors name the whole key; null where
  // there is none.
  std::unique_ptr<JsonConfig> Object(absl::string_view key) const;
  // The members of that object which are objects, in the order of the file; a name may hold dots.
  std::vector<std::pair<std::string, std::unique_ptr<JsonConfig>>> Objects(
      absl::string_view key) const;

  bool Has(absl::string_view key) const;
  absl::StatusOr<int64_t> Integer(absl::string_view key) const;
  absl::StatusOr<double> Float(absl::string_view key) const;
  absl::StatusOr<bool> Bool(absl::string_view key) const;
  absl::StatusOr<std::string> String(absl::string_view key) const;
  // A number counts as a list of one.
  absl::StatusOr<std::vector<int64_t>> Integers(absl::string_view key) const;
  absl::StatusOr<std::vector<double>> Floats(absl::string_view key) const;
  absl::StatusOr<std::vector<std::string>> Strings(absl::string_view key) const;
  absl::StatusOr<int64_t> ArrayLength(absl::string_view key) const;

  // `fallback` where the key is absent.
  absl::StatusOr<int64_t> IntegerOr(absl::string_view key, int64_t fallback) const;
  absl::StatusOr<bool> BoolOr(absl::string_view key, bool fallback) const;
  absl::StatusOr<std::string> StringOr(absl::string_view key, absl::string_view fallback) const;

  absl::Status Error(absl::string_view key, absl::string_view text) const;

 private:
  JsonConfig(std::string path, std::shared_ptr<const std::string> text,
             std::vector<std::string> place, std::string prefix);

  // Of the object at `steps` from here, which errors call `key`.
  std::unique_ptr<JsonConfig> Inner(absl::string_view key, std::vector<std::string> steps,
                                    const nlohmann::json& object) const;
  std::vector<std::string> PlaceOf(const std::vector<std::string>& steps) const;
  const nlohmann::json* Find(absl::string_view key) const;  // null when absent or null
  absl::StatusOr<const nlohmann::json*> Get(absl::string_view key) const;
  absl::Status TypeError(absl::string_view key, const nlohmann::json& value,
                         absl::string_view wanted) const;
  absl::StatusOr<int64_t> ToInteger(absl::string_view key, const nlohmann::json& value) const;

  const std::string path_;
  const std::shared_ptr<const std::string> text_;  // of the whole file
  std::vector<std::string> place_;                 // of root_: names from the outermost object on
  const std::string prefix_;                       // of keys in errors: empty, or ends in a dot
  std::unique_ptr<nlohmann::json> root_;
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_JSON_CONFIG_H_
