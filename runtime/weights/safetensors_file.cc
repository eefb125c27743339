#include "runtime/weights/safetensors_file.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"
#include "runtime/weights/gguf_cursor.h"

namespace trireme::weights {
namespace {

constexpr int64_t kLengthBytes = 8;
constexpr uint64_t kHeaderBytesMax = 100'000'000;  // the reference reader's limit
constexpr size_t kDimensionsMax = 8;

using kernels::WeightFormat;

constexpr SafetensorsDtype kDtypes[] = {
    {"F32", 32, WeightFormat::kF32},   {"F16", 16, WeightFormat::kF16},
    {"BF16", 16, WeightFormat::kBF16}, {"BOOL", 8, std::nullopt},
    {"U8", 8, std::nullopt},           {"I8", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt},      {"F8_E4M3", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},      {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt},  {"I16", 16, std::nullopt},
    {"U16", 16, std::nullopt},         {"I32", 32, std::nullopt},
    {"U32", 32, std::nullopt},         {"I64", 64, std::nullopt},
    {"U64", 64, std::nullopt},         {"F64", 64, std::nullopt},
    {"C64", 64, std::nullopt},         {"F4", 4, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},      {"F6_E3M2", 6, std::nullopt},
};

// Takes the header event by event: duplicates show, and memory stays in proportion to the entries.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<SafetensorsEntry> entries;
  std::string fault;  // what is wrong; empty: nothing

  bool start_object(std::size_t /*elements*/) override {
    ++depth_;
    if (in_array_ || (depth_ > 2 && !in_metadata_)) {
      return Fail("holds an object where a value is wanted");
    }
    if (depth_ == 2 && !in_metadata_) {
      entry_ = SafetensorsEntry();
      entry_.name = name_;
      fields_ = 0;
    }
    return true;
  }

  bool key(string_t& text) override {
    if (depth_ == 1) {
      name_ = text;
      in_metadata_ = text == "__metadata__";
      return names_.insert(text).second || Fail("stands twice");
    }
    field_ = text;
    return true;
  }

  bool end_object() override {
    --depth_;
    if (depth_ == 1 && !in_metadata_) {
      if (fields_ != (kDtypeSeen | kShapeSeen | kPlaceSeen)) {
        return Fail("needs dtype, shape and data_offsets");
      }
      entries.push_back(std::move(entry_));
    }
    in_metadata_ = in_metadata_ && depth_ > 1;
    return true;
  }

  bool start_array(std::size_t /*elements*/) override {
    const bool is_known = depth_ == 2 && (field_ == "shape" || field_ == "data_offsets");
    if (in_metadata_ || in_array_ || !is_known) {
      return Fail("holds a list where a value is wanted");
    }
    in_array_ = true;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    in_array_ = false;
    if (field_ == "shape") {
      entry_.shape = numbers_;
      return See(kShapeSeen);
    }
    if (numbers_.size() != 2) {
      return Fail("has data_offsets that are not two numbers");
    }
    entry_.begin = numbers_[0];
    entry_.end = numbers_[1];
    return See(kPlaceSeen);
  }

  bool string(string_t& text) override {
    if (in_metadata_) {
      return true;
    }
    if (depth_ != 2 || in_array_ || field_ != "dtype") {
      return Fail("holds a string where none is wanted");
    }
    entry_.dtype = FindSafetensorsDtype(text);
    return entry_.dtype == nullptr
               ? Fail(absl::StrCat("has dtype ", PrintableName(text), ", which the format lacks"))
               : See(kDtypeSeen);
  }

  bool number_unsigned(number_unsigned_t number) override {
    const size_t limit = field_ == "shape" ? kDimensionsMax : 2;
    if (!in_array_ || numbers_.size() >= limit || number > INT64_MAX) {
      return Fail("holds a number that is too large, or too many of them");
    }
    numbers_.push_back(static_cast<int64_t>(number));
    return true;
  }

  bool number_integer(number_integer_t /*number*/) override {
    return Fail("holds a negative number");
  }
  bool number_float(number_float_t /*number*/, const string_t& /*text*/) override {
    return Fail("holds a number with a fraction");
  }
  bool boolean(bool /*value*/) override { return Fail("holds true or false"); }
  bool null() override { return Fail("holds null"); }
  bool binary(binary_t& /*value*/) override { return Fail("holds bytes"); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    if (fault.empty()) {
      fault = absl::StrCat("the header is no JSON at byte ", position + kLengthBytes);
    }
    return false;
  }

 private:
  static constexpr int kDtypeSeen = 1;
  static constexpr int kShapeSeen = 2;
  static constexpr int kPlaceSeen = 4;

  bool Fail(absl::string_view text) {
    fault = depth_ == 0 ? absl::StrCat("the header ", text)
                        : absl::StrCat("tensor ", PrintableName(name_), " ", text);
    return false;
  }

  bool See(int field) {
    if ((fields_ & field) != 0) {
      return Fail("has a field that stands twice");
    }
    fields_ |= field;
    return true;
  }

  int depth_ = 0;
  bool in_metadata_ = false;
  bool in_array_ = false;
  int fields_ = 0;
  std::string name_;
  std::string field_;
  SafetensorsEntry entry_;
  std::vector<int64_t> numbers_;
  std::set<std::string> names_;
};

// The bytes that dtype and shape need, or nothing when they overflow or leave half a byte.
std::optional<int64_t> BytesOf(const SafetensorsEntry& entry) {
  int64_t bits = entry.dtype->bits;
  for (const int64_t extent : entry.shape) {
    if (__builtin_mul_overflow(bits, extent, &bits)) {
      return std::nullopt;
    }
  }
  return bits % 8 == 0 ? std::optional(bits / 8) : std::nullopt;
}

absl::Status CheckPlaces(const std::string& file_name, int64_t data_bytes,
                         const std::vector<SafetensorsEntry>& entries) {
  const auto error = [&](const SafetensorsEntry& entry, const std::string& text) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_name, ": tensor ", PrintableName(entry.name), " ", text));
  };
  int64_t end = 0;
  for (const SafetensorsEntry& entry : entries) {
    const std::optional<int64_t> bytes = BytesOf(entry);
    if (!bytes.has_value() || entry.begin > entry.end || entry.end - entry.begin != *bytes) {
      return error(entry, absl::StrCat("has data_offsets ", entry.begin, " to ", entry.end,
                                       ", which do not fit its dtype and shape"));
    }
    if (entry.begin != end) {
      return error(entry, absl::StrCat("begins at ", entry.begin, ", wanted ", end,
                                       ": tensors lie one after another without holes"));
    }
    if (entry.end > data_bytes) {
      return error(entry, absl::StrCat("ends at ", entry.end, "; the file has ", data_bytes,
                                       " bytes of data and is cut short"));
    }
    end = entry.end;
  }
  if (end != data_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_name, ": has ", data_bytes, " bytes of data, wanted ", end, " as its tensors say"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> HeaderBytes(const std::string& file_name, absl::Span<const uint8_t> bytes) {
  if (bytes.size() < static_cast<size_t>(kLengthBytes)) {
    return absl::InvalidArgumentError(absl::StrCat(file_name, ": is ", bytes.size(),
                                                   " bytes long; a safetensors file has at least ",
                                                   kLengthBytes));
  }
  const uint64_t header_bytes = LoadUnaligned<uint64_t>(bytes.data());
  if (header_bytes > kHeaderBytesMax || header_bytes > bytes.size() - kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_name, ": says that its header has ", header_bytes, " bytes; the file has ",
        bytes.size(), " and a header at most ", kHeaderBytesMax));
  }
  return static_cast<int64_t>(header_bytes);
}

}  // namespace

const SafetensorsDtype* FindSafetensorsDtype(absl::string_view name) {
  for (const SafetensorsDtype& dtype : kDtypes) {
    if (name == dtype.name) {
      return &dtype;
    }
  }
  return nullptr;
}

absl::StatusOr<std::vector<SafetensorsEntry>> ParseSafetensors(const std::string& file_name,
                                                               absl::Span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(const int64_t header_bytes, HeaderBytes(file_name, bytes));
  const absl::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                                 static_cast<size_t>(header_bytes));
  HeaderReader reader;
  if (header.empty() || header.front() != '{') {
    reader.fault = "the header does not begin with {";
  } else if (!IsValidUtf8(header)) {
    reader.fault = "the header is no UTF-8";
  } else if (!nlohmann::json::sax_parse(header.begin(), header.end(), &reader) &&
             reader.fault.empty()) {
    reader.fault = "the header is no JSON";
  }
  if (!reader.fault.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(file_name, ": ", reader.fault));
  }
  std::stable_sort(reader.entries.begin(), reader.entries.end(),
                   [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                     return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                   });
  RETURN_IF_ERROR(CheckPlaces(
      file_name, static_cast<int64_t>(bytes.size()) - kLengthBytes - header_bytes, reader.entries));
  return std::move(reader.entries);
}

SafetensorsFile::SafetensorsFile(std::unique_ptr<MappedFile> file,
                                 std::vector<SafetensorsEntry> entries)
    : file_(std::move(file)), entries_(std::move(entries)) {
  data_start_ = file_->size_bytes() - (entries_.empty() ? 0 : entries_.back().end);
}

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  ASSIGN_OR_RETURN(std::vector<SafetensorsEntry> entries, ParseSafetensors(path, file->bytes()));
  return std::unique_ptr<SafetensorsFile>(new SafetensorsFile(std::move(file), std::move(entries)));
}

absl::Span<const uint8_t> SafetensorsFile::Data(const SafetensorsEntry& entry) const {
  return file_->bytes().subspan(static_cast<size_t>(data_start_ + entry.begin),
                                static_cast<size_t>(entry.end - entry.begin));
}

}  // namespace trireme::weights
