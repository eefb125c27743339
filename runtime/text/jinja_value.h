// Value: what an expression of a chat template evaluates to. Python's value model, as far as
// templates can see it. Strings are immutable and counted; containers belong to the Runtime of one
// rendering (jinja_runtime.h) and live as long as it, so cycles through a namespace neither leak
// nor recurse on destruction. Terms: *undefined* is a value that remembers why it is missing;
// *markup* is a string that `safe` or `escape` made.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_VALUE_H_
#define TRIREME_RUNTIME_TEXT_JINJA_VALUE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/text/jinja_traced_text.h"

namespace trireme::text::jinja {

// Python's integers have no limit; 128 bits hold every number that real templates meet, and
// overflow is an error.
using Integer = __int128;

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBoolean,
  kInteger,
  kFloat,
  kString,
  // Objects, owned by the Runtime:
  kSequence,
  kMap,
  kRange,
  kNamespace,
  kLoop,
  kMacro,
  kFunction,
  kMethod,
  kCycler,
  kJoiner,
};

enum class StringFlavor : uint8_t { kPlain, kMarkup, kBytes };

struct StringData {
  TracedText text;
  StringFlavor flavor = StringFlavor::kPlain;
};
using StringPointer = std::shared_ptr<const StringData>;

struct UndefinedData;

struct Object {
  explicit Object(Kind object_kind) : kind(object_kind) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  const Kind kind;
};

struct Sequence;
struct Map;

// Cheap to copy. Objects are borrowed from the Runtime, which outlives every Value that refers to
// it.
class Value {
 public:
  Value() = default;  // undefined, without a reason
  static Value None() { return Value(NoneTag{}); }
  static Value Undefined(std::shared_ptr<const UndefinedData> reason);
  static Value Boolean(bool value) { return Value(value); }
  static Value Of(Integer value) { return Value(value); }
  static Value Of(double value) { return Value(value); }
  static Value Of(StringPointer value) { return Value(std::move(value)); }
  static Value Of(Object* value) { return Value(value); }

  Kind kind() const;
  bool Is(Kind wanted) const { return kind() == wanted; }
  bool IsUndefined() const { return data_.index() == 0; }
  bool IsString() const { return data_.index() == 5; }
  bool IsNumber() const { return data_.index() >= 2 && data_.index() <= 4; }
  // A boolean or an integer.
  bool IsWhole() const { return data_.index() == 2 || data_.index() == 3; }
  bool IsMarkup() const { return IsString() && string().flavor == StringFlavor::kMarkup; }

  // Each requires the kind it names.
  bool boolean() const { return std::get<bool>(data_); }
  Integer integer() const { return std::get<Integer>(data_); }
  double real() const { return std::get<double>(data_); }
  const StringData& string() const { return *std::get<StringPointer>(data_); }
  const StringPointer& string_pointer() const { return std::get<StringPointer>(data_); }
  const TracedText& text() const { return string().text; }
  std::string_view bytes() const { return text().bytes(); }
  Object* object() const { return std::get<Object*>(data_); }
  const UndefinedData* undefined_reason() const { return std::get<0>(data_).get(); }

  // The integer of a boolean or integer; requires one of the two.
  Integer AsInteger() const { return data_.index() == 2 ? Integer{boolean()} : integer(); }
  // The number as a double; requires IsNumber().
  double AsDouble() const;
  // The object when it is of the kind, else null.
  Sequence* AsSequence() const;
  Map* AsMap() const;

 private:
  struct NoneTag {};
  using Data = std::variant<std::shared_ptr<const UndefinedData>, NoneTag, bool, Integer, double,
                            StringPointer, Object*>;
  template <typename T>
  explicit Value(T value) : data_(std::move(value)) {}
  Data data_;
};

// Why a value is missing.
struct UndefinedData {
  enum class Reason : uint8_t { kVariable, kAttribute, kElement, kUnsafe, kText } reason;
  const char* owner_type =
      "";      // Python's name of the owner's type, for all but kVariable and kText
  Value name;  // the variable, attribute, element, or the whole text of kText
};

enum class SequenceFlavor : uint8_t {
  kList,
  kTuple,
  kKeys,
  kValues,
  kItems,
  kGenerator,  // can be gone through once, has no length and no elements
  kGroup,      // a tuple (grouper, list) of `groupby`
};

struct Sequence : Object {
  Sequence(std::vector<Value> values, SequenceFlavor sequence_flavor)
      : Object(Kind::kSequence), items(std::move(values)), flavor(sequence_flavor) {}
  bool IsIndexable() const {
    return flavor == SequenceFlavor::kList || flavor == SequenceFlavor::kTuple ||
           flavor == SequenceFlavor::kGroup;
  }
  std::vector<Value> items;
  const SequenceFlavor flavor;
};

// A dictionary in insertion order. Keys: strings, numbers, booleans, none, and tuples of those.
struct Map : Object {
  Map() : Object(Kind::kMap) {}
  // Null when absent. Requires a key that IsHashable.
  const Value* Find(const Value& key) const;
  const Value* Find(std::string_view key) const;
  // Replaces the value of an equal key. Requires a key that IsHashable.
  void Set(const Value& key, const Value& value);
  // Appends without looking for an equal key: for input whose keys are known to differ.
  void AppendNew(Value key, Value value);

  std::vector<std::pair<Value, Value>> entries;

 private:
  // Position of each string key once the map has grown past a few entries; keys point into
  // `entries`' strings.
  absl::flat_hash_map<std::string_view, size_t> positions_;
  size_t Position(const Value& key) const;
  size_t Position(std::string_view key) const;
};

struct Namespace : Object {
  Namespace() : Object(Kind::kNamespace) {}
  Map attributes;
};

struct Range : Object {
  Range(Integer range_start, Integer range_stop, Integer range_step)
      : Object(Kind::kRange), start(range_start), stop(range_stop), step(range_step) {}
  int64_t size() const;
  Value At(int64_t index) const { return Value::Of(start + index * step); }
  const Integer start, stop, step;
};

// One running `for`.
struct Loop : Object {
  Loop() : Object(Kind::kLoop) {}
  std::vector<Value> items;
  int64_t index = 0;  // 0-based
  int depth = 0;      // 0 for the outermost of a recursive loop
  std::vector<Value> last_changed;
  bool has_changed_before = false;
  // Set by the interpreter for a recursive loop: the statement and the scope that a call of `loop`
  // runs it in.
  const void* recursive_statement = nullptr;
  void* scope = nullptr;
};

struct Cycler : Object {
  explicit Cycler(std::vector<Value> values) : Object(Kind::kCycler), items(std::move(values)) {}
  std::vector<Value> items;
  size_t position = 0;
};

struct Joiner : Object {
  explicit Joiner(Value joiner_separator)
      : Object(Kind::kJoiner), separator(std::move(joiner_separator)) {}
  Value separator;
  bool used = false;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<Value, Value>> keywords;  // the first of each pair is a string
};

class Runtime;
// Python's name of the type ("dict", "NoneType").
const char* TypeName(const Value& value);
// Whether the value can be a key of a Map.
bool IsHashable(const Value& value);
// Equality of two keys that are hashable: 1, 1.0 and true are equal.
bool KeysEqual(const Value& a, const Value& b);
// What an error about this undefined value says: "'x' is undefined". Requires IsUndefined().
std::string UndefinedMessage(const Value& value);
// Python's truth.
bool IsTrue(const Value& value);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_VALUE_H_
