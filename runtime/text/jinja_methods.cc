#include "runtime/text/jinja_methods.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_comparison.h"
#include "runtime/text/jinja_elements.h"
#include "runtime/text/jinja_string_methods.h"

namespace trireme::text::jinja {
namespace {

using Result = absl::StatusOr<Value>;

// --- mappings ---

Result Items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("items", arguments, {}).status());
  std::vector<Value> items;
  for (const auto& [key, value] : self.AsMap()->entries) {
    ASSIGN_OR_RETURN(Value pair, runtime.List({key, value}, SequenceFlavor::kTuple));
    items.push_back(std::move(pair));
  }
  return runtime.List(std::move(items), SequenceFlavor::kItems);
}

Result Keys(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("keys", arguments, {}).status());
  ASSIGN_OR_RETURN(std::vector<Value> keys, runtime.Iterate(self));
  return runtime.List(std::move(keys), SequenceFlavor::kKeys);
}

Result Values(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("values", arguments, {}).status());
  std::vector<Value> values;
  for (const auto& [key, value] : self.AsMap()->entries) {
    values.push_back(value);
  }
  return runtime.List(std::move(values), SequenceFlavor::kValues);
}

Result Get(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("get", arguments, {"key", "default"}));
  if (bound[0] == nullptr) {
    return TemplateError("get() needs a key");
  }
  if (!IsHashable(*bound[0])) {
    return TemplateError("unhashable type: '", TypeName(*bound[0]), "'");
  }
  RETURN_IF_ERROR(runtime.Spend(1));
  const Value* found = self.AsMap()->Find(*bound[0]);
  return found != nullptr ? *found : bound[1] != nullptr ? *bound[1] : Value::None();
}

Result CopyMap(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("copy", arguments, {}).status());
  ASSIGN_OR_RETURN(Map * copy, runtime.NewMap());
  for (const auto& [key, value] : self.AsMap()->entries) {
    RETURN_IF_ERROR(runtime.Spend(2));
    copy->AppendNew(key, value);
  }
  return Value::Of(copy);
}

constexpr MethodEntry kMapMethods[] = {
    {"copy", CopyMap}, {"get", Get}, {"items", Items}, {"keys", Keys}, {"values", Values},
};
constexpr std::string_view kUnsafeMapMethods[] = {"clear", "pop", "popitem", "setdefault",
                                                  "update"};

// --- lists and tuples ---

Result IndexOf(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("index", arguments, {"value"}));
  const std::vector<Value>& items = self.AsSequence()->items;
  for (size_t i = 0; bound[0] != nullptr && i < items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool is_equal, Equals(runtime, items[i], *bound[0]));
    if (is_equal) {
      return Value::Of(static_cast<Integer>(i));
    }
  }
  return TemplateError("index(): the value is not in the list");
}

Result CountOf(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("count", arguments, {"value"}));
  Integer times = 0;
  for (const Value& item : self.AsSequence()->items) {
    ASSIGN_OR_RETURN(const bool is_equal,
                     bound[0] == nullptr ? false : Equals(runtime, item, *bound[0]));
    times += is_equal ? 1 : 0;
  }
  return Value::Of(times);
}

Result CopyList(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("copy", arguments, {}).status());
  return runtime.List(self.AsSequence()->items);
}

constexpr MethodEntry kListMethods[] = {{"copy", CopyList}, {"count", CountOf}, {"index", IndexOf}};
constexpr std::string_view kUnsafeListMethods[] = {"append", "clear",  "extend",  "insert",
                                                   "pop",    "remove", "reverse", "sort"};

// --- numbers ---

Result IsIntegerMethod(Runtime&, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("is_integer", arguments, {}).status());
  return Value::Boolean(!self.Is(Kind::kFloat) || std::floor(self.real()) == self.real());
}

Result BitLength(Runtime&, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("bit_length", arguments, {}).status());
  Integer bits = 0;
  for (Integer rest = self.AsInteger(); rest != 0; rest /= 2) {
    ++bits;
  }
  return Value::Of(bits);
}

constexpr MethodEntry kFloatMethods[] = {{"is_integer", IsIntegerMethod}};
constexpr MethodEntry kIntegerMethods[] = {{"bit_length", BitLength}};

// --- loops and cyclers ---

Loop& LoopOf(const Value& self) { return *static_cast<Loop*>(self.object()); }
Cycler& CyclerOf(const Value& self) { return *static_cast<Cycler*>(self.object()); }

Result LoopCycle(Runtime&, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) {
    return TemplateError("loop.cycle() needs at least one value");
  }
  const size_t index = static_cast<size_t>(LoopOf(self).index);
  return arguments.positional[index % arguments.positional.size()];
}

Result LoopChanged(Runtime& runtime, const Value& self, const Arguments& arguments) {
  Loop& loop = LoopOf(self);
  bool is_same = loop.has_changed_before && loop.last_changed.size() == arguments.positional.size();
  for (size_t i = 0; is_same && i < loop.last_changed.size(); ++i) {
    ASSIGN_OR_RETURN(is_same, Equals(runtime, loop.last_changed[i], arguments.positional[i]));
  }
  loop.has_changed_before = true;
  loop.last_changed = arguments.positional;
  return Value::Boolean(!is_same);
}

Result CyclerNext(Runtime&, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("next", arguments, {}).status());
  Cycler& cycler = CyclerOf(self);
  const Value value = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return value;
}

Result CyclerReset(Runtime&, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("reset", arguments, {}).status());
  CyclerOf(self).position = 0;
  return Value::None();
}

constexpr MethodEntry kLoopMethods[] = {{"changed", LoopChanged}, {"cycle", LoopCycle}};
constexpr MethodEntry kCyclerMethods[] = {{"next", CyclerNext}, {"reset", CyclerReset}};

Value Missing(const Value& owner, const Value& name, UndefinedData::Reason reason) {
  return Value::Undefined(
      std::make_shared<const UndefinedData>(UndefinedData{reason, TypeName(owner), name}));
}

// A loop's field, or a value without a kind of its own when there is none.
bool LoopField(const Value& owner, std::string_view name, Value& field) {
  const Loop& loop = LoopOf(owner);
  const int64_t length = static_cast<int64_t>(loop.items.size());
  const auto integer = [&field](int64_t value) { field = Value::Of(Integer{value}); };
  if (name == "index") {
    integer(loop.index + 1);
  } else if (name == "index0") {
    integer(loop.index);
  } else if (name == "first") {
    field = Value::Boolean(loop.index == 0);
  } else if (name == "last") {
    field = Value::Boolean(loop.index + 1 == length);
  } else if (name == "length") {
    integer(length);
  } else if (name == "revindex") {
    integer(length - loop.index);
  } else if (name == "revindex0") {
    integer(length - loop.index - 1);
  } else if (name == "depth") {
    integer(loop.depth + 1);
  } else if (name == "depth0") {
    integer(loop.depth);
  } else if (name == "previtem" && loop.index > 0) {
    field = loop.items[static_cast<size_t>(loop.index - 1)];
  } else if (name == "nextitem" && loop.index + 1 < length) {
    field = loop.items[static_cast<size_t>(loop.index + 1)];
  } else {
    return false;
  }
  return true;
}

template <size_t count>
const MethodEntry* Lookup(const MethodEntry (&entries)[count], std::string_view name) {
  const auto found = std::find_if(std::begin(entries), std::end(entries),
                                  [name](const MethodEntry& entry) { return entry.name == name; });
  return found == std::end(entries) ? nullptr : &*found;
}

template <size_t count>
bool IsListed(const std::string_view (&names)[count], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

const MethodEntry* FindMethod(const Value& owner, std::string_view name) {
  switch (owner.kind()) {
    case Kind::kString:
      return FindStringMethod(name);
    case Kind::kMap:
      return Lookup(kMapMethods, name);
    case Kind::kSequence:
      return owner.AsSequence()->IsIndexable() ? Lookup(kListMethods, name) : nullptr;
    case Kind::kFloat:
      return Lookup(kFloatMethods, name);
    case Kind::kBoolean:
    case Kind::kInteger:
      return Lookup(kIntegerMethods, name);
    case Kind::kLoop:
      return Lookup(kLoopMethods, name);
    case Kind::kCycler:
      return Lookup(kCyclerMethods, name);
    default:
      return nullptr;
  }
}

bool IsUnsafe(const Value& owner, std::string_view name) {
  const Sequence* sequence = owner.AsSequence();
  if (name.size() > 4 && name.substr(0, 2) == "__" && name.substr(name.size() - 2) == "__") {
    return true;
  }
  return (owner.Is(Kind::kMap) && IsListed(kUnsafeMapMethods, name)) ||
         (sequence != nullptr && sequence->flavor == SequenceFlavor::kList &&
          IsListed(kUnsafeListMethods, name));
}

// A field that is no method, of any kind of value; false when there is none.
bool Field(const Value& owner, std::string_view name, Value& field) {
  if (owner.Is(Kind::kLoop)) {
    return LoopField(owner, name, field);
  }
  if (owner.Is(Kind::kNamespace)) {
    const Value* found = static_cast<const Namespace*>(owner.object())->attributes.Find(name);
    if (found != nullptr) {
      field = *found;
    }
    return found != nullptr;
  }
  if (owner.Is(Kind::kCycler) && name == "current") {
    field = CyclerOf(owner).items[CyclerOf(owner).position];
    return true;
  }
  const Sequence* sequence = owner.AsSequence();
  if (sequence != nullptr && sequence->flavor == SequenceFlavor::kGroup &&
      (name == "grouper" || name == "list")) {
    field = sequence->items[name == "grouper" ? 0 : 1];
    return true;
  }
  if (owner.IsNumber() && (name == "real" || name == "imag")) {
    field = name == "real" ? owner : Value::Of(Integer{0});
    return true;
  }
  return false;
}

// The method or field; undefined with reason kUnsafe for what is hidden, false when there is
// neither.
absl::StatusOr<bool> FindMember(Runtime& runtime, const Value& owner, const Value& name,
                                Value& member) {
  RETURN_IF_ERROR(runtime.Spend(1));
  if (Field(owner, name.bytes(), member)) {
    return true;
  }
  if (const MethodEntry* entry = FindMethod(owner, name.bytes()); entry != nullptr) {
    RETURN_IF_ERROR(runtime.SpendBytes(sizeof(Method)));
    member = Value::Of(runtime.New<Method>(owner, *entry));
    return true;
  }
  if (IsUnsafe(owner, name.bytes())) {
    member = Missing(owner, name, UndefinedData::Reason::kUnsafe);
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<Value> Member(Runtime& runtime, const Value& owner, const Value& name) {
  RETURN_IF_ERROR(RequireDefined(owner));
  Value member;
  ASSIGN_OR_RETURN(const bool has_member, FindMember(runtime, owner, name, member));
  return has_member ? member : Missing(owner, name, UndefinedData::Reason::kAttribute);
}

absl::StatusOr<Value> Attribute(Runtime& runtime, const Value& owner, const Value& name) {
  RETURN_IF_ERROR(RequireDefined(owner));
  Value member;
  ASSIGN_OR_RETURN(const bool has_member, FindMember(runtime, owner, name, member));
  if (has_member) {
    return member;
  }
  if (owner.Is(Kind::kMap)) {
    return Element(runtime, owner, name);
  }
  return Missing(owner, name, UndefinedData::Reason::kAttribute);
}

absl::StatusOr<Value> ElementOrAttribute(Runtime& runtime, const Value& owner, const Value& key) {
  ASSIGN_OR_RETURN(Value element, Element(runtime, owner, key));
  if (!element.IsUndefined() || !key.IsString()) {
    return element;
  }
  Value member;
  ASSIGN_OR_RETURN(const bool has_member, FindMember(runtime, owner, key, member));
  return has_member ? member : element;
}

}  // namespace trireme::text::jinja
