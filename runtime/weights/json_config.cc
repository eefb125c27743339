#include "runtime/weights/json_config.h"

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/json_member_order.h"

namespace trireme::weights {
namespace {

// Real ones are below 100 KB; lists of labels may make them larger.
constexpr int64_t kFileBytesMax = int64_t{16} << 20;

std::string Shown(const nlohmann::json& value) {
  constexpr size_t kShownBytes = 60;
  const std::string text =
      value.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  return text.size() <= kShownBytes ? text : absl::StrCat(text.substr(0, kShownBytes), "...");
}

}  // namespace

JsonConfig::JsonConfig(std::string path, std::shared_ptr<const std::string> text,
                       std::vector<std::string> place, std::string prefix)
    : path_(std::move(path)),
      text_(std::move(text)),
      place_(std::move(place)),
      prefix_(std::move(prefix)) {}
JsonConfig::~JsonConfig() = default;

absl::StatusOr<std::unique_ptr<JsonConfig>> JsonConfig::Read(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  if (file->size_bytes() > kFileBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is ", file->size_bytes(),
                                                   " bytes long; a file of settings has at most ",
                                                   kFileBytesMax));
  }
  return Parse(path, std::string(file->bytes().begin(), file->bytes().end()));
}

absl::StatusOr<std::unique_ptr<JsonConfig>> JsonConfig::Parse(const std::string& path,
                                                              std::string text) {
  std::unique_ptr<JsonConfig> config(new JsonConfig(
      path, std::make_shared<const std::string>(std::move(text)), /*place=*/{}, /*prefix=*/""));
  config->root_ = std::make_unique<nlohmann::json>(
      nlohmann::json::parse(config->text(), nullptr, /*allow_exceptions=*/false));
  if (!config->root_->is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is ", config->root_->is_discarded() ? "no JSON" : "no JSON object",
                     "; wanted an object with the model's settings"));
  }
  return config;
}

void JsonConfig::EnterIfObject(absl::string_view key) {
  const auto found = root_->find(std::string(key));
  if (found != root_->end() && found->is_object()) {
    auto inner = std::make_unique<nlohmann::json>(*found);
    root_ = std::move(inner);
    place_.emplace_back(key);
  }
}

std::vector<std::string> JsonConfig::PlaceOf(const std::vector<std::string>& steps) const {
  std::vector<std::string> place = place_;
  place.insert(place.end(), steps.begin(), steps.end());
  return place;
}

std::unique_ptr<JsonConfig> JsonConfig::Inner(absl::string_view key, std::vector<std::string> steps,
                                              const nlohmann::json& object) const {
  std::unique_ptr<JsonConfig> inner(
      new JsonConfig(path_, text_, PlaceOf(steps), absl::StrCat(prefix_, key, ".")));
  inner->root_ = std::make_unique<nlohmann::json>(object);
  return inner;
}

std::unique_ptr<JsonConfig> JsonConfig::Object(absl::string_view key) const {
  const nlohmann::json* const value = Find(key);
  return value == nullptr || !value->is_object() ? nullptr
                                                 : Inner(key, absl::StrSplit(key, '.'), *value);
}

std::vector<std::pair<std::string, std::unique_ptr<JsonConfig>>> JsonConfig::Objects(
    absl::string_view key) const {
  std::vector<std::pair<std::string, std::unique_ptr<JsonConfig>>> objects;
  const nlohmann::json* const value = Find(key);
  if (value == nullptr || !value->is_object()) {
    return objects;
  }
  std::vector<std::string> steps = absl::StrSplit(key, '.');
  for (const std::string& name : JsonMemberOrder(text(), PlaceOf(steps))) {
    const auto member = value->find(name);
    if (member != value->end() && member->is_object()) {
      steps.push_back(name);
      objects.emplace_back(name, Inner(absl::StrCat(key, ".", name), steps, *member));
      steps.pop_back();
    }
  }
  return objects;
}

const nlohmann::json* JsonConfig::Find(absl::string_view key) const {
  const nlohmann::json* value = root_.get();
  for (const absl::string_view name : absl::StrSplit(key, '.')) {
    if (!value->is_object()) {
      return nullptr;
    }
    const auto found = value->find(std::string(name));
    if (found == value->end() || found->is_null()) {
      return nullptr;
    }
    value = &*found;
  }
  return value;
}

bool JsonConfig::Has(absl::string_view key) const { return Find(key) != nullptr; }

absl::StatusOr<const nlohmann::json*> JsonConfig::Get(absl::string_view key) const {
  const nlohmann::json* const value = Find(key);
  if (value == nullptr) {
    return absl::NotFoundError(absl::StrCat(path_, ": key ", prefix_, key, " is missing"));
  }
  return value;
}

absl::Status JsonConfig::Error(absl::string_view key, absl::string_view text) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, ": key ", prefix_, key, " ", text));
}

absl::Status JsonConfig::TypeError(absl::string_view key, const nlohmann::json& value,
                                   absl::string_view wanted) const {
  return Error(key, absl::StrCat("is ", Shown(value), ", wanted ", wanted));
}

absl::StatusOr<int64_t> JsonConfig::ToInteger(absl::string_view key,
                                              const nlohmann::json& value) const {
  if (value.is_boolean()) {
    return value.get<bool>() ? 1 : 0;
  }
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    return number <= INT64_MAX ? absl::StatusOr<int64_t>(static_cast<int64_t>(number))
                               : TypeError(key, value, "an integer of 64 bits");
  }
  if (value.is_number_integer()) {
    return value.get<int64_t>();
  }
  if (value.is_number_float()) {  // 1e6, 4096.0
    const double number = value.get<double>();
    if (std::trunc(number) == number && std::fabs(number) < 0x1p53) {
      return static_cast<int64_t>(number);
    }
  }
  return TypeError(key, value, "an integer");
}

absl::StatusOr<int64_t> JsonConfig::Integer(absl::string_view key) const {
  ASSIGN_OR_RETURN(const nlohmann::json* const value, Get(key));
  return ToInteger(key, *value);
}

absl::StatusOr<double> JsonConfig::Float(absl::string_view key) const {
  ASSIGN_OR_RETURN(const nlohmann::json* const value, Get(key));
  return value->is_number() ? absl::StatusOr<double>(value->get<double>())
                            : TypeError(key, *value, "a number");
}

absl::StatusOr<bool> JsonConfig::Bool(absl::string_view key) const {
  ASSIGN_OR_RETURN(const nlohmann::json* const value, Get(key));
  return value->is_boolean() ? absl::StatusOr<bool>(value->get<bool>())
                             : TypeError(key, *value, "true or false");
}

absl::StatusOr<std::string> JsonConfig::String(absl::string_view key) const {
  ASSIGN_OR_RETURN(const nlohmann::json* const value, Get(key));
  return value->is_string() ? absl::StatusOr<std::string>(value->get<std::string>())
                            : TypeError(key, *value, "a string");
}

absl::StatusOr<std::vector<int64_t>> JsonConfig::Integers(absl::string_view key) const {
  ASSIGN_OR_RETURN(const nlohmann::json* const value, Get(key));
  std::vector<int64_t> integers;
  if (!value->is_array()) {
    ASSIGN_OR_RETURN(const int64_t integer, ToInteger(key, *value));
    return std::vector<int64_t>{integer};
  }
  for (const nlohmann::json& element : *value) {
    ASSIGN_OR_RETURN(const int64_t integer, ToInteger(key, element));
    integers.push_back(integer);
  }
  return integers;
}

absl::StatusOr<std::vector<double>> JsonConfig::Floats(absl::string_view key) const {
  ASSIGN_OR_RETURN(const nlohmann::json* const value, Get(key));
  std::vector<double> floats;
  if (!value->is_array()) {
    return TypeError(key, *value, "a list of numbers");
  }
  for (const nlohmann::json& element : *value) {
    if (!element.is_number()) {
      return TypeError(key, element, "a number");
    }
    floats.push_back(element.get<double>());
  }
  return floats;
}

absl::StatusOr<std::vector<std::string>> JsonConfig::Strings(absl::string_view key) const {
  ASSIGN_OR_RETURN(const nlohmann::json* const value, Get(key));
  std::vector<std::string> strings;
  if (!value->is_array()) {
    return TypeError(key, *value, "a list of strings");
  }
  for (const nlohmann::json& element : *value) {
    if (!element.is_string()) {
      return TypeError(key, element, "a string");
    }
    strings.push_back(element.get<std::string>());
  }
  return strings;
}

absl::StatusOr<int64_t> JsonConfig::ArrayLength(absl::string_view key) const {
  ASSIGN_OR_RETURN(const nlohmann::json* const value, Get(key));
  return value->is_array() ? absl::StatusOr<int64_t>(static_cast<int64_t>(value->size()))
                           : TypeError(key, *value, "a list");
}

absl::StatusOr<int64_t> JsonConfig::IntegerOr(absl::string_view key, int64_t fallback) const {
  return Has(key) ? Integer(key) : fallback;
}

absl::StatusOr<bool> JsonConfig::BoolOr(absl::string_view key, bool fallback) const {
  return Has(key) ? Bool(key) : fallback;
}

absl::StatusOr<std::string> JsonConfig::StringOr(absl::string_view key,
                                                 absl::string_view fallback) const {
  return Has(key) ? String(key) : std::string(fallback);
}

}  // namespace trireme::weights
