#include "runtime/text/json_fields.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"

namespace trireme::text {
namespace {

using nlohmann::json;

constexpr int kDepthMax = 64;
constexpr int kSequenceDepthMax = 8;

// Brackets that are open at once outside strings; malformed text is for the parser.
bool IsTooDeep(absl::string_view bytes) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDepthMax) {
        return true;
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

using PartVisitor = absl::FunctionRef<absl::Status(const JsonFields&, const std::string&)>;

absl::Status VisitPartsAt(const json& spec, const std::string& path, absl::string_view list_key,
                          int depth, PartVisitor visit) {
  ASSIGN_OR_RETURN(const JsonFields part, JsonFields::Of(spec, path));
  ASSIGN_OR_RETURN(const std::string type, part.String("type"));
  if (type != "Sequence") {
    return visit(part, type);
  }
  if (depth >= kSequenceDepthMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: sequences are nested deeper than %d", path, kSequenceDepthMax));
  }
  ASSIGN_OR_RETURN(const json* list, part.List(list_key));
  for (size_t i = 0; i < list->size(); ++i) {
    RETURN_IF_ERROR(VisitPartsAt((*list)[i], absl::StrFormat("%s[%d]", part.PathOf(list_key), i),
                                 list_key, depth + 1, visit));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<json> ParseJsonFile(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\xef\xbb\xbf")) {
    return absl::InvalidArgumentError("begins with a byte order mark, which JSON does not allow");
  }
  if (IsTooDeep(bytes)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("is nested deeper than %d levels", kDepthMax));
  }
  try {
    return json::parse(bytes.begin(), bytes.end());
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("is no JSON: ", std::string(error.what()).substr(0, 300)));
  }
}

absl::StatusOr<JsonFields> JsonFields::Of(const json& value, std::string path) {
  if (!value.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is ", value.type_name(), "; wanted an object"));
  }
  return JsonFields(&value, std::move(path));
}

std::string JsonFields::PathOf(absl::string_view key) const {
  return path_.empty() ? std::string(key) : absl::StrCat(path_, ".", key);
}

const json* JsonFields::Find(absl::string_view key) const {
  const auto member = json_->find(std::string(key));
  return member == json_->end() || member->is_null() ? nullptr : &*member;
}

absl::Status JsonFields::WrongType(absl::string_view key, absl::string_view wanted) const {
  const json* const member = Find(key);
  return absl::InvalidArgumentError(
      member == nullptr
          ? absl::StrCat(PathOf(key), " is missing; wanted ", wanted)
          : absl::StrCat(PathOf(key), " is ", member->type_name(), "; wanted ", wanted));
}

absl::StatusOr<std::string> JsonFields::String(absl::string_view key) const {
  const json* const member = Find(key);
  return member != nullptr && member->is_string()
             ? absl::StatusOr<std::string>(member->get<std::string>())
             : WrongType(key, "a string");
}

absl::StatusOr<int32_t> JsonFields::Id(absl::string_view key) const {
  const json* const member = Find(key);
  return member != nullptr ? TokenIdOf(*member, PathOf(key)) : WrongType(key, "a token id");
}

absl::StatusOr<const json*> JsonFields::List(absl::string_view key) const {
  const json* const member = Find(key);
  return member != nullptr && member->is_array() ? absl::StatusOr<const json*>(member)
                                                 : WrongType(key, "a list");
}

absl::StatusOr<JsonFields> JsonFields::Object(absl::string_view key) const {
  const json* const member = Find(key);
  return member != nullptr && member->is_object()
             ? absl::StatusOr<JsonFields>(JsonFields(member, PathOf(key)))
             : WrongType(key, "an object");
}

absl::StatusOr<bool> JsonFields::Flag(absl::string_view key, bool otherwise) const {
  const json* const member = Find(key);
  if (member == nullptr) {
    return otherwise;
  }
  return member->is_boolean() ? absl::StatusOr<bool>(member->get<bool>())
                              : WrongType(key, "true or false");
}

absl::StatusOr<std::optional<std::string>> JsonFields::OptionalString(absl::string_view key) const {
  const json* const member = Find(key);
  if (member == nullptr) {
    return std::optional<std::string>();
  }
  if (!member->is_string()) {
    return WrongType(key, "a string or null");
  }
  return std::optional<std::string>(member->get<std::string>());
}

absl::Status VisitParts(const json& spec, const std::string& path, absl::string_view list_key,
                        PartVisitor visit) {
  return VisitPartsAt(spec, path, list_key, 0, visit);
}

absl::StatusOr<int32_t> TokenIdOf(const json& value, absl::string_view path) {
  const bool fits = value.is_number_unsigned() && value.get<uint64_t>() <= INT32_MAX;
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is ", value.dump().substr(0, 60),
                                                   "; wanted a token id from 0 to 2147483647"));
  }
  return static_cast<int32_t>(value.get<uint64_t>());
}

absl::Status UnknownType(absl::string_view path, absl::string_view type, absl::string_view known) {
  return absl::InvalidArgumentError(absl::StrCat(path, ".type is \"", type.substr(0, 60),
                                                 "\", which is not supported; known: ", known));
}

}  // namespace trireme::text
