#include "runtime/weights/gguf_metadata.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace trireme::weights {
namespace {

std::string TypeText(const GgufValue& value) {
  if (value.type() == GgufType::kArray) {
    return absl::StrCat("array of ", NameOf(value.element_type()));
  }
  return NameOf(value.type());
}

std::string RangeText(IntegerRange range) {
  const IntegerRange all;
  if (range.max == all.max && range.min == all.min) {
    return "an integer of 64 bits with sign";
  }
  if (range.max == all.max) {
    return absl::StrCat("at least ", range.min);
  }
  if (range.min == all.min) {
    return absl::StrCat("at most ", range.max);
  }
  return absl::StrCat(range.min, " to ", range.max);
}

// An integer in range, or the text that says what is wrong with it; empty when it is no integer.
struct IntegerReading {
  std::optional<int64_t> value;
  std::string problem;
};

IntegerReading ReadInteger(const GgufValue& value, IntegerRange range) {
  if (const std::optional<int64_t> number = value.AsInteger()) {
    if (*number >= range.min && *number <= range.max) {
      return {number, ""};
    }
    return {std::nullopt, absl::StrCat("is ", *number, ", wanted ", RangeText(range))};
  }
  if (const std::optional<uint64_t> number = value.AsUnsigned()) {
    return {std::nullopt, absl::StrCat("is ", *number, ", too large: wanted ", RangeText(range))};
  }
  return {};
}

std::optional<double> ReadNumber(const GgufValue& value) {
  if (const std::optional<double> number = value.AsFloat()) {
    return number;
  }
  if (const std::optional<int64_t> number = value.AsInteger()) {
    return static_cast<double>(*number);
  }
  if (const std::optional<uint64_t> number = value.AsUnsigned()) {
    return static_cast<double>(*number);
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<GgufMetadata> GgufMetadata::Create(std::string file_name,
                                                  std::vector<GgufEntry> entries) {
  std::vector<int32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&entries](int32_t a, int32_t b) {
    return entries[static_cast<size_t>(a)].key < entries[static_cast<size_t>(b)].key;
  });
  GgufMetadata metadata(std::move(file_name), std::move(entries), std::move(order));
  for (size_t i = 1; i < metadata.order_by_key_.size(); ++i) {
    const GgufEntry& first = metadata.entries_[metadata.order_by_key_[i - 1]];
    const GgufEntry& second = metadata.entries_[metadata.order_by_key_[i]];
    if (first.key == second.key) {
      return metadata.EntryError(second, absl::StrCat("is a duplicate: it stands at byte ",
                                                      first.offset, " too; wanted each key once"));
    }
  }
  return metadata;
}

GgufMetadata::GgufMetadata(std::string file_name, std::vector<GgufEntry> entries,
                           std::vector<int32_t> order_by_key)
    : file_name_(std::move(file_name)),
      entries_(std::move(entries)),
      order_by_key_(std::move(order_by_key)) {}

const GgufEntry* GgufMetadata::Find(absl::string_view key) const {
  const auto found = std::lower_bound(
      order_by_key_.begin(), order_by_key_.end(), key,
      [this](int32_t index, absl::string_view wanted) { return entries_[index].key < wanted; });
  if (found == order_by_key_.end() || entries_[*found].key != key) {
    return nullptr;
  }
  return &entries_[*found];
}

absl::StatusOr<int64_t> GgufMetadata::GetInteger(absl::string_view key, IntegerRange range) const {
  ASSIGN_OR_RETURN(const GgufEntry* const entry, Require(key, "an integer"));
  const IntegerReading reading = ReadInteger(entry->value, range);
  if (reading.value.has_value()) {
    return *reading.value;
  }
  return reading.problem.empty() ? TypeError(*entry, "an integer")
                                 : EntryError(*entry, reading.problem);
}

absl::StatusOr<int64_t> GgufMetadata::GetIntegerOr(absl::string_view key, int64_t absent,
                                                   IntegerRange range) const {
  return Has(key) ? GetInteger(key, range) : absent;
}

absl::StatusOr<double> GgufMetadata::GetFloat(absl::string_view key) const {
  ASSIGN_OR_RETURN(const GgufEntry* const entry, Require(key, "a number"));
  const std::optional<double> number = ReadNumber(entry->value);
  if (!number.has_value()) {
    return TypeError(*entry, "a number");
  }
  if (!std::isfinite(*number)) {
    return EntryError(*entry, absl::StrCat("is ", *number, ", wanted a finite number"));
  }
  return *number;
}

absl::StatusOr<double> GgufMetadata::GetFloatOr(absl::string_view key, double absent) const {
  return Has(key) ? GetFloat(key) : absent;
}

absl::StatusOr<bool> GgufMetadata::GetBool(absl::string_view key) const {
  ASSIGN_OR_RETURN(const GgufEntry* const entry, Require(key, "a bool"));
  const std::optional<bool> value = entry->value.AsBool();
  if (!value.has_value()) {
    return TypeError(*entry, "a bool");
  }
  return *value;
}

absl::StatusOr<bool> GgufMetadata::GetBoolOr(absl::string_view key, bool absent) const {
  return Has(key) ? GetBool(key) : absent;
}

absl::StatusOr<absl::string_view> GgufMetadata::GetString(absl::string_view key) const {
  ASSIGN_OR_RETURN(const GgufEntry* const entry, Require(key, "a string"));
  const std::optional<absl::string_view> text = entry->value.AsString();
  if (!text.has_value()) {
    return TypeError(*entry, "a string");
  }
  return *text;
}

absl::StatusOr<absl::string_view> GgufMetadata::GetStringOr(absl::string_view key,
                                                            absl::string_view absent) const {
  return Has(key) ? GetString(key) : absent;
}

absl::StatusOr<std::vector<int64_t>> GgufMetadata::GetIntegerArray(absl::string_view key,
                                                                   IntegerRange range) const {
  ASSIGN_OR_RETURN(const GgufEntry* const entry, RequireArray(key, "an array of integers"));
  std::vector<int64_t> numbers;
  numbers.reserve(static_cast<size_t>(entry->value.element_count()));
  GgufElements elements(entry->value);
  while (const std::optional<GgufValue> element = elements.Next()) {
    const IntegerReading reading = ReadInteger(*element, range);
    if (!reading.value.has_value()) {
      return reading.problem.empty() ? TypeError(*entry, "an array of integers")
                                     : EntryError(*entry, absl::StrCat("element ", numbers.size(),
                                                                       " ", reading.problem));
    }
    numbers.push_back(*reading.value);
  }
  return numbers;
}

absl::StatusOr<std::vector<float>> GgufMetadata::GetFloatArray(absl::string_view key) const {
  ASSIGN_OR_RETURN(const GgufEntry* const entry, RequireArray(key, "an array of numbers"));
  std::vector<float> numbers;
  numbers.reserve(static_cast<size_t>(entry->value.element_count()));
  GgufElements elements(entry->value);
  while (const std::optional<GgufValue> element = elements.Next()) {
    const std::optional<double> number = ReadNumber(*element);
    if (!number.has_value()) {
      return TypeError(*entry, "an array of numbers");
    }
    numbers.push_back(static_cast<float>(*number));
  }
  return numbers;
}

absl::StatusOr<std::vector<bool>> GgufMetadata::GetBoolArray(absl::string_view key) const {
  ASSIGN_OR_RETURN(const GgufEntry* const entry, RequireArray(key, "an array of bools"));
  std::vector<bool> values;
  values.reserve(static_cast<size_t>(entry->value.element_count()));
  GgufElements elements(entry->value);
  while (const std::optional<GgufValue> element = elements.Next()) {
    const std::optional<bool> value = element->AsBool();
    if (!value.has_value()) {
      return TypeError(*entry, "an array of bools");
    }
    values.push_back(*value);
  }
  return values;
}

absl::StatusOr<std::vector<absl::string_view>> GgufMetadata::GetStringArray(
    absl::string_view key) const {
  ASSIGN_OR_RETURN(const GgufEntry* const entry, RequireArray(key, "an array of strings"));
  std::vector<absl::string_view> texts;
  texts.reserve(static_cast<size_t>(entry->value.element_count()));
  GgufElements elements(entry->value);
  while (const std::optional<GgufValue> element = elements.Next()) {
    const std::optional<absl::string_view> text = element->AsString();
    if (!text.has_value()) {
      return TypeError(*entry, "an array of strings");
    }
    texts.push_back(*text);
  }
  return texts;
}

absl::StatusOr<std::vector<int64_t>> GgufMetadata::GetIntegerPerLayer(absl::string_view key,
                                                                      int64_t layers,
                                                                      IntegerRange range) const {
  ASSIGN_OR_RETURN(const GgufEntry* const entry, Require(key, "an integer or an array of them"));
  if (layers < 0 || layers > kMaxDecodedElements) {
    return EntryError(*entry, absl::StrCat("is asked for ", layers, " layers, wanted 0 to ",
                                           kMaxDecodedElements));
  }
  if (entry->value.type() != GgufType::kArray) {
    ASSIGN_OR_RETURN(const int64_t number, GetInteger(key, range));
    return std::vector<int64_t>(static_cast<size_t>(layers), number);
  }
  if (entry->value.element_count() != layers) {
    return EntryError(*entry, absl::StrCat("has ", entry->value.element_count(),
                                           " elements, wanted ", layers, ", one for each layer"));
  }
  return GetIntegerArray(key, range);
}

absl::Status GgufMetadata::Error(absl::string_view key, absl::string_view text) const {
  if (const GgufEntry* const entry = Find(key)) {
    return EntryError(*entry, text);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(file_name_, ": metadata key ", PrintableName(key), " (missing) ", text));
}

absl::StatusOr<const GgufEntry*> GgufMetadata::Require(absl::string_view key,
                                                       absl::string_view wanted) const {
  if (const GgufEntry* const entry = Find(key)) {
    return entry;
  }
  return absl::NotFoundError(absl::StrCat(file_name_, ": metadata key ", PrintableName(key),
                                          " is missing, wanted ", wanted,
                                          "; the file is incomplete or made for another program"));
}

absl::StatusOr<const GgufEntry*> GgufMetadata::RequireArray(absl::string_view key,
                                                            absl::string_view wanted) const {
  ASSIGN_OR_RETURN(const GgufEntry* const entry, Require(key, wanted));
  if (entry->value.type() != GgufType::kArray) {
    return TypeError(*entry, wanted);
  }
  if (entry->value.element_count() > kMaxDecodedElements) {
    return EntryError(*entry,
                      absl::StrCat("has ", entry->value.element_count(),
                                   " elements, too many: wanted at most ", kMaxDecodedElements));
  }
  return entry;
}

absl::Status GgufMetadata::EntryError(const GgufEntry& entry, absl::string_view text) const {
  return absl::InvalidArgumentError(absl::StrCat(file_name_, ": metadata key ",
                                                 PrintableName(entry.key), " (at byte ",
                                                 entry.offset, ") ", text));
}

absl::Status GgufMetadata::TypeError(const GgufEntry& entry, absl::string_view wanted) const {
  return EntryError(entry, absl::StrCat("is of type ", TypeText(entry.value), ", wanted ", wanted));
}

}  // namespace trireme::weights
