#include "runtime/text/jinja_value.h"

#include "runtime/text/jinja_strings.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

// Below this a walk through the entries is faster than a hash table.
constexpr size_t kEntriesWithoutIndex = 8;
constexpr size_t kAbsent = static_cast<size_t>(-1);

std::string NameText(const Value& name) {
  if (name.IsString()) {
    // Names come from the conversation too and may be of any length.
    constexpr int64_t kShownCharacters = 100;
    const size_t end = OffsetOfCharacter(name.bytes(), kShownCharacters);
    return Joined(name.bytes().substr(0, end), end < name.bytes().size() ? "..." : "");
  }
  if (name.IsNumber() && !name.Is(Kind::kFloat)) {
    return Joined(static_cast<int64_t>(name.AsInteger()));
  }
  return Joined("of type ", TypeName(name));
}

const char* SequenceTypeName(SequenceFlavor flavor) {
  switch (flavor) {
    case SequenceFlavor::kList:
      return "list";
    case SequenceFlavor::kTuple:
    case SequenceFlavor::kGroup:
      return "tuple";
    case SequenceFlavor::kKeys:
      return "dict_keys";
    case SequenceFlavor::kValues:
      return "dict_values";
    case SequenceFlavor::kItems:
      return "dict_items";
    case SequenceFlavor::kGenerator:
      return "generator";
  }
  return "sequence";
}

const char* StringTypeName(StringFlavor flavor) {
  switch (flavor) {
    case StringFlavor::kPlain:
      return "str";
    case StringFlavor::kMarkup:
      return "Markup";
    case StringFlavor::kBytes:
      return "bytes";
  }
  return "str";
}

}  // namespace

Value Value::Undefined(std::shared_ptr<const UndefinedData> reason) {
  return Value(std::move(reason));
}

Kind Value::kind() const {
  switch (data_.index()) {
    case 0:
      return Kind::kUndefined;
    case 1:
      return Kind::kNone;
    case 2:
      return Kind::kBoolean;
    case 3:
      return Kind::kInteger;
    case 4:
      return Kind::kFloat;
    case 5:
      return Kind::kString;
    default:
      return object()->kind;
  }
}

double Value::AsDouble() const {
  return Is(Kind::kFloat) ? real() : static_cast<double>(AsInteger());
}

Sequence* Value::AsSequence() const {
  return Is(Kind::kSequence) ? static_cast<Sequence*>(object()) : nullptr;
}

Map* Value::AsMap() const { return Is(Kind::kMap) ? static_cast<Map*>(object()) : nullptr; }

size_t Map::Position(std::string_view key) const {
  if (entries.size() > kEntriesWithoutIndex) {
    const auto found = positions_.find(key);
    return found == positions_.end() ? kAbsent : found->second;
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].first.IsString() && entries[i].first.bytes() == key) {
      return i;
    }
  }
  return kAbsent;
}

size_t Map::Position(const Value& key) const {
  if (key.IsString()) {
    return Position(key.bytes());
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (KeysEqual(entries[i].first, key)) {
      return i;
    }
  }
  return kAbsent;
}

const Value* Map::Find(const Value& key) const {
  const size_t position = Position(key);
  return position == kAbsent ? nullptr : &entries[position].second;
}

const Value* Map::Find(std::string_view key) const {
  const size_t position = Position(key);
  return position == kAbsent ? nullptr : &entries[position].second;
}

void Map::Set(const Value& key, const Value& value) {
  const size_t position = Position(key);
  if (position != kAbsent) {
    entries[position].second = value;
    return;
  }
  AppendNew(key, value);
}

void Map::AppendNew(Value key, Value value) {
  entries.emplace_back(std::move(key), std::move(value));
  if (entries.size() <= kEntriesWithoutIndex) {
    return;
  }
  const size_t first_missing = entries.size() - 1 == kEntriesWithoutIndex ? 0 : entries.size() - 1;
  for (size_t i = first_missing; i < entries.size(); ++i) {
    if (entries[i].first.IsString()) {
      positions_.emplace(entries[i].first.bytes(), i);
    }
  }
}

int64_t Range::size() const {
  const Integer distance = step > 0 ? stop - start : start - stop;
  const Integer stride = step > 0 ? step : -step;
  return distance <= 0 ? 0 : static_cast<int64_t>((distance + stride - 1) / stride);
}

const char* TypeName(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBoolean:
      return "bool";
    case Kind::kInteger:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return StringTypeName(value.string().flavor);
    case Kind::kSequence:
      return SequenceTypeName(value.AsSequence()->flavor);
    case Kind::kMap:
      return "dict";
    case Kind::kRange:
      return "range";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kMacro:
      return "Macro";
    case Kind::kFunction:
      return "function";
    case Kind::kMethod:
      return "builtin_function_or_method";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kJoiner:
      return "Joiner";
  }
  return "object";
}

bool IsHashable(const Value& value) {
  if (value.Is(Kind::kMap)) {
    return false;
  }
  const Sequence* sequence = value.AsSequence();
  if (sequence == nullptr) {
    return true;
  }
  if (sequence->flavor != SequenceFlavor::kTuple) {
    return false;
  }
  // One level: keys that hold tuples of tuples occur in no template.
  for (const Value& item : sequence->items) {
    if (item.Is(Kind::kMap) || item.Is(Kind::kSequence)) {
      return false;
    }
  }
  return true;
}

bool KeysEqual(const Value& a, const Value& b) {
  if (a.IsNumber() && b.IsNumber()) {
    if (a.Is(Kind::kFloat) || b.Is(Kind::kFloat)) {
      return a.AsDouble() == b.AsDouble();
    }
    return a.AsInteger() == b.AsInteger();
  }
  if (a.kind() != b.kind()) {
    return false;
  }
  if (a.IsString()) {
    return a.bytes() == b.bytes();
  }
  if (a.Is(Kind::kNone) || a.IsUndefined()) {
    return true;
  }
  const Sequence* left = a.AsSequence();
  const Sequence* right = b.AsSequence();
  if (left == nullptr) {
    return a.object() == b.object();
  }
  if (left->items.size() != right->items.size()) {
    return false;
  }
  for (size_t i = 0; i < left->items.size(); ++i) {
    const bool is_nested = left->items[i].Is(Kind::kSequence);
    if (is_nested || !KeysEqual(left->items[i], right->items[i])) {
      return false;
    }
  }
  return true;
}

std::string UndefinedMessage(const Value& value) {
  const UndefinedData* data = value.undefined_reason();
  if (data == nullptr) {
    return "the value is undefined";
  }
  const std::string name = NameText(data->name);
  switch (data->reason) {
    case UndefinedData::Reason::kVariable:
      return Joined("'", name, "' is undefined");
    case UndefinedData::Reason::kAttribute:
      return Joined("'", data->owner_type, " object' has no attribute '", name, "'");
    case UndefinedData::Reason::kElement:
      return Joined(data->owner_type, " object has no element ", name);
    case UndefinedData::Reason::kUnsafe:
      return Joined("access to attribute '", name, "' of '", data->owner_type,
                    "' object is unsafe: templates cannot change lists and mappings, nor see "
                    "Python's own attributes");
    case UndefinedData::Reason::kText:
      return name;
  }
  return name;
}

bool IsTrue(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBoolean:
      return value.boolean();
    case Kind::kInteger:
      return value.integer() != 0;
    case Kind::kFloat:
      return value.real() != 0.0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kSequence:
      return value.AsSequence()->flavor == SequenceFlavor::kGenerator ||
             !value.AsSequence()->items.empty();
    case Kind::kMap:
      return !value.AsMap()->entries.empty();
    case Kind::kRange:
      return static_cast<Range*>(value.object())->size() != 0;
    case Kind::kNamespace:
    case Kind::kLoop:
    case Kind::kMacro:
    case Kind::kFunction:
    case Kind::kMethod:
    case Kind::kCycler:
    case Kind::kJoiner:
      return true;
  }
  return true;
}

}  // namespace trireme::text::jinja
