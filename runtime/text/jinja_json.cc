#include "runtime/text/jinja_json.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_print.h"
#include "runtime/text/jinja_strings.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

using nlohmann::ordered_json;

absl::Status TooDeep() {
  return absl::ResourceExhaustedError(
      Joined("JSON nested deeper than the limit of ", kDataDepthMax));
}

// Builds a document from the reader's events. nlohmann's own builder looks for equal keys one by
// one and rounds big integers.
class DocumentBuilder : public nlohmann::json_sax<ordered_json> {
 public:
  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.find_first_of(".eE") != std::string::npos) {
      return Add(value);
    }
    return Add(ordered_json::binary({text.begin(), text.end()}, kBigIntegerSubtype));
  }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return Open(ordered_json::object()); }
  bool key(string_t& key) override {
    open_.back().key = std::move(key);
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(ordered_json::array()); }
  bool end_array() override { return Close(); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    std::string_view message = error.what();
    const size_t details = message.find("] ");
    status_ = absl::InvalidArgumentError(
        Joined("not valid JSON at byte ", position, ": ",
               details == std::string_view::npos ? message : message.substr(details + 2)));
    return false;
  }

  absl::Status status() const { return status_; }
  ordered_json Take() { return std::move(root_); }

 private:
  struct Level {
    ordered_json* container;
    std::string key;
    absl::flat_hash_map<std::string, size_t> positions;
  };

  ordered_json* Place(ordered_json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = open_.back();
    if (level.container->is_array()) {
      level.container->push_back(std::move(value));
      return &level.container->back();
    }
    auto& members = level.container->get_ref<ordered_json::object_t&>();
    const auto [position, is_new] = level.positions.emplace(level.key, members.size());
    if (!is_new) {
      auto& member = *(members.begin() + static_cast<std::ptrdiff_t>(position->second));
      member.second = std::move(value);
      return &member.second;
    }
    auto& storage = static_cast<ordered_json::object_t::Container&>(members);
    storage.emplace_back(level.key, std::move(value));
    return &storage.back().second;
  }

  bool Add(ordered_json value) {
    Place(std::move(value));
    return true;
  }

  bool Open(ordered_json container) {
    if (open_.size() >= static_cast<size_t>(kDataDepthMax)) {
      status_ = TooDeep();
      return false;
    }
    ordered_json* place = Place(std::move(container));
    open_.push_back({place, {}, {}});
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  ordered_json root_;
  std::vector<Level> open_;
  absl::Status status_ = absl::InternalError("the JSON reader stopped without a reason");
};

absl::StatusOr<Integer> IntegerOfDigits(const ordered_json::binary_t& digits) {
  Integer number = 0;
  const bool is_negative = !digits.empty() && digits[0] == '-';
  for (size_t i = is_negative ? 1 : 0; i < digits.size(); ++i) {
    if (digits[i] < '0' || digits[i] > '9' ||
        __builtin_mul_overflow(number, Integer{10}, &number) ||
        __builtin_add_overflow(number, Integer{digits[i] - '0'}, &number)) {
      return TemplateError("an integer of ", digits.size(), " digits does not fit in 128 bits");
    }
  }
  return is_negative ? -number : number;
}

absl::StatusOr<Value> ConvertString(Runtime& runtime, const std::string& text, Origin origin) {
  RETURN_IF_ERROR(runtime.SpendInput(text.size()));
  if (!IsValidUtf8(text)) {
    return TemplateError("a string of ", text.size(), " bytes is not valid UTF-8");
  }
  return runtime.String(text, origin);
}

absl::StatusOr<Value> Convert(Runtime& runtime, const ordered_json& document, Origin origin,
                              int depth) {
  if (depth > kDataDepthMax) {
    return TooDeep();
  }
  RETURN_IF_ERROR(runtime.Spend(1));
  switch (document.type()) {
    case ordered_json::value_t::null:
    case ordered_json::value_t::discarded:
      return Value::None();
    case ordered_json::value_t::boolean:
      return Value::Boolean(document.get<bool>());
    case ordered_json::value_t::number_integer:
      return Value::Of(Integer{document.get<int64_t>()});
    case ordered_json::value_t::number_unsigned:
      return Value::Of(Integer{document.get<uint64_t>()});
    case ordered_json::value_t::number_float:
      return Value::Of(document.get<double>());
    case ordered_json::value_t::string:
      return ConvertString(runtime, document.get_ref<const std::string&>(), origin);
    case ordered_json::value_t::binary: {
      ASSIGN_OR_RETURN(const Integer number, IntegerOfDigits(document.get_binary()));
      return Value::Of(number);
    }
    case ordered_json::value_t::array: {
      std::vector<Value> items;
      items.reserve(document.size());
      for (const ordered_json& element : document) {
        ASSIGN_OR_RETURN(Value item, Convert(runtime, element, origin, depth + 1));
        items.push_back(std::move(item));
      }
      return runtime.List(std::move(items));
    }
    case ordered_json::value_t::object: {
      ASSIGN_OR_RETURN(Map * map, runtime.NewMap());
      for (const auto& [name, element] : document.get_ref<const ordered_json::object_t&>()) {
        ASSIGN_OR_RETURN(Value key, ConvertString(runtime, name, origin));
        ASSIGN_OR_RETURN(Value item, Convert(runtime, element, origin, depth + 1));
        map->AppendNew(std::move(key), std::move(item));
      }
      return Value::Of(map);
    }
  }
  return Value::None();
}

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style)
      : runtime_(runtime),
        style_(style),
        item_separator_(style.item_separator.value_or(style.indent.has_value() ? "," : ", ")),
        key_separator_(style.key_separator.value_or(": ")) {}

  absl::Status Write(const Value& value, int depth) {
    if (depth > kDataDepthMax) {
      return TooDeep();
    }
    RETURN_IF_ERROR(runtime_.Spend(1));
    RETURN_IF_ERROR(Account());
    switch (value.kind()) {
      case Kind::kNone:
        out_.append("null");
        return absl::OkStatus();
      case Kind::kBoolean:
        out_.append(value.boolean() ? "true" : "false");
        return absl::OkStatus();
      case Kind::kInteger:
        out_.append(IntegerText(value.integer()));
        return absl::OkStatus();
      case Kind::kFloat:
        out_.append(Float(value.real()));
        return absl::OkStatus();
      case Kind::kString:
        if (value.string().flavor != StringFlavor::kBytes) {
          return String(value.bytes());
        }
        break;
      case Kind::kSequence:
        if (value.AsSequence()->IsIndexable()) {
          return List(*value.AsSequence(), depth);
        }
        break;
      case Kind::kMap:
        return Dictionary(*value.AsMap(), depth);
      default:
        break;
    }
    return TemplateError("tojson: a value of type ", TypeName(value), " cannot be written as JSON",
                         value.IsUndefined() ? Joined(" (", UndefinedMessage(value), ")") : "");
  }

  std::string Take() { return std::move(out_); }

 private:
  static std::string Float(double value) {
    if (std::isnan(value)) {
      return "NaN";
    }
    if (std::isinf(value)) {
      return value < 0 ? "-Infinity" : "Infinity";
    }
    return FloatText(value);
  }

  // Charges what was written since the last time: separators and escapes may be long.
  absl::Status Account() {
    constexpr size_t kChunkBytes = size_t{1} << 16;
    if (out_.size() - accounted_ < kChunkBytes) {
      return absl::OkStatus();
    }
    const size_t written = out_.size() - accounted_;
    accounted_ = out_.size();
    return runtime_.SpendBytes(written);
  }

  absl::Status NewLine(int depth) {
    if (!style_.indent.has_value()) {
      return absl::OkStatus();
    }
    out_.push_back('\n');
    RETURN_IF_ERROR(runtime_.SpendProduct(depth, style_.indent->size()));
    for (int i = 0; i < depth; ++i) {
      out_.append(*style_.indent);
    }
    return absl::OkStatus();
  }

  absl::Status List(const Sequence& list, int depth) {
    out_.push_back('[');
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) {
        out_.append(item_separator_);
      }
      RETURN_IF_ERROR(NewLine(depth + 1));
      RETURN_IF_ERROR(Write(list.items[i], depth + 1));
    }
    if (!list.items.empty()) {
      RETURN_IF_ERROR(NewLine(depth));
    }
    out_.push_back(']');
    return absl::OkStatus();
  }

  // The entries in the order they are written.
  absl::StatusOr<std::vector<const std::pair<Value, Value>*>> Entries(const Map& map) {
    std::vector<const std::pair<Value, Value>*> entries;
    RETURN_IF_ERROR(runtime_.SpendProduct(static_cast<Integer>(map.entries.size()), 16));
    bool has_only_strings = true;
    bool has_only_numbers = true;
    for (const auto& entry : map.entries) {
      entries.push_back(&entry);
      has_only_strings = has_only_strings && entry.first.IsString();
      has_only_numbers = has_only_numbers && entry.first.IsNumber();
    }
    if (!style_.sort_keys) {
      return entries;
    }
    if (!has_only_strings && !has_only_numbers) {
      return TemplateError("tojson: sort_keys cannot order keys of different types");
    }
    std::stable_sort(entries.begin(), entries.end(), [has_only_strings](auto* a, auto* b) {
      return has_only_strings ? a->first.bytes() < b->first.bytes()
                              : a->first.AsDouble() < b->first.AsDouble();
    });
    return entries;
  }

  absl::Status Key(const Value& key) {
    if (key.IsString()) {
      return String(key.bytes());
    }
    if (!key.IsNumber() && !key.Is(Kind::kNone)) {
      return TemplateError("tojson: a key of type ", TypeName(key), " cannot be written as JSON");
    }
    out_.push_back('"');
    RETURN_IF_ERROR(Write(key, 0));
    out_.push_back('"');
    return absl::OkStatus();
  }

  absl::Status Dictionary(const Map& map, int depth) {
    ASSIGN_OR_RETURN(const auto entries, Entries(map));
    out_.push_back('{');
    bool is_first = true;
    for (const auto* entry : entries) {
      if (!is_first) {
        out_.append(item_separator_);
      }
      is_first = false;
      RETURN_IF_ERROR(NewLine(depth + 1));
      RETURN_IF_ERROR(Key(entry->first));
      out_.append(key_separator_);
      RETURN_IF_ERROR(Write(entry->second, depth + 1));
    }
    if (!entries.empty()) {
      RETURN_IF_ERROR(NewLine(depth));
    }
    out_.push_back('}');
    return absl::OkStatus();
  }

  // True when the character was written as one of JSON's short escapes.
  bool ShortEscape(char32_t c) {
    constexpr std::string_view kCharacters = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    const size_t known = c < 0x80 ? kCharacters.find(static_cast<char>(c)) : std::string_view::npos;
    if (known == std::string_view::npos) {
      return false;
    }
    out_.push_back('\\');
    out_.push_back(kLetters[known]);
    return true;
  }

  absl::Status String(std::string_view text) {
    RETURN_IF_ERROR(runtime_.SpendCharacters(text.size()));
    out_.push_back('"');
    for (size_t offset = 0; offset < text.size();) {
      RETURN_IF_ERROR(Account());
      const DecodedCharacter character = DecodeAt(text, offset);
      const unsigned int c = static_cast<unsigned int>(character.code_point);
      if (!ShortEscape(character.code_point)) {
        const bool is_plain = style_.ensure_ascii ? c >= 0x20 && c < 0x7F : c >= 0x20;
        if (is_plain) {
          out_.append(text.substr(offset, character.bytes));
        } else if (c < 0x10000) {
          absl::StrAppendFormat(&out_, "\\u%04x", c);
        } else {
          absl::StrAppendFormat(&out_, "\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10),
                                0xDC00 + ((c - 0x10000) & 0x3FF));
        }
      }
      offset += character.bytes;
    }
    out_.push_back('"');
    return absl::OkStatus();
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  const std::string item_separator_;
  const std::string key_separator_;
  std::string out_;
  size_t accounted_ = 0;
};

}  // namespace

absl::StatusOr<ordered_json> ParseJson(std::string_view text) {
  DocumentBuilder builder;
  if (!ordered_json::sax_parse(text, &builder)) {
    return builder.status();
  }
  return builder.Take();
}

absl::StatusOr<Value> FromJson(Runtime& runtime, const ordered_json& document, Origin origin) {
  return Convert(runtime, document, origin, 0);
}

absl::StatusOr<std::string> ToJson(Runtime& runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  RETURN_IF_ERROR(writer.Write(value, 0));
  return writer.Take();
}

}  // namespace trireme::text::jinja
