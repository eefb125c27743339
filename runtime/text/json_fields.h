// Reading the members of a tokenizer file's JSON with errors that say where: "normalizer.type is
// missing". Not for documents that a template sees (jinja_json.h).
#ifndef TRIREME_RUNTIME_TEXT_JSON_FIELDS_H_
#define TRIREME_RUNTIME_TEXT_JSON_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace trireme::text {

// Parses a whole file. Errors (InvalidArgument): no JSON, with the position; a byte order mark;
// more than 64 levels.
absl::StatusOr<nlohmann::json> ParseJsonFile(absl::string_view bytes);

// A view of one object; `json` must outlive it.
class JsonFields {
 public:
  // Errors (InvalidArgument): `json` is no object. `path` names it in errors.
  static absl::StatusOr<JsonFields> Of(const nlohmann::json& json, std::string path);

  const nlohmann::json& value() const { return *json_; }
  const std::string& path() const { return path_; }
  std::string PathOf(absl::string_view key) const;

  // Null when the member is missing or null.
  const nlohmann::json* Find(absl::string_view key) const;

  // Errors (InvalidArgument): the member is missing, null or of another type.
  absl::StatusOr<std::string> String(absl::string_view key) const;
  absl::StatusOr<int32_t> Id(absl::string_view key) const;
  absl::StatusOr<const nlohmann::json*> List(absl::string_view key) const;
  absl::StatusOr<JsonFields> Object(absl::string_view key) const;
  // A missing or null one counts as `otherwise`.
  absl::StatusOr<bool> Flag(absl::string_view key, bool otherwise) const;
  absl::StatusOr<std::optional<std::string>> OptionalString(absl::string_view key) const;

 private:
  JsonFields(const nlohmann::json* json, std::string path) : json_(json), path_(std::move(path)) {}
  absl::Status WrongType(absl::string_view key, absl::string_view wanted) const;

  const nlohmann::json* json_;
  std::string path_;
};

// Calls `visit` for each part that `spec` describes, in order, with its "type": for the spec
// itself, or, when that is a Sequence, for the parts in its list `list_key`, which may be sequences
// again. Errors (InvalidArgument): a part that is no object or has no type; more than 8 sequences
// in each other; and the first error of `visit`.
absl::Status VisitParts(
    const nlohmann::json& spec, const std::string& path, absl::string_view list_key,
    absl::FunctionRef<absl::Status(const JsonFields& part, const std::string& type)> visit);

// A token id: a whole number from 0 to 2^31 - 1. `path` names it in errors.
absl::StatusOr<int32_t> TokenIdOf(const nlohmann::json& json, absl::string_view path);

// The error for a part whose "type" is not one of `known`.
absl::Status UnknownType(absl::string_view path, absl::string_view type, absl::string_view known);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_JSON_FIELDS_H_
