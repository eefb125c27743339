#include "runtime/text/jinja_comparison.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_strings.h"

namespace trireme::text::jinja {
namespace {

std::string_view SignOf(Operator operation) {
  switch (operation) {
    case Operator::kLess:
      return "<";
    case Operator::kLessEqual:
      return "<=";
    case Operator::kGreater:
      return ">";
    case Operator::kGreaterEqual:
      return ">=";
    default:
      return "?";
  }
}

absl::StatusOr<bool> SequencesEqual(Runtime& runtime, const Value& a, const Value& b, int depth);

absl::StatusOr<bool> EqualsAtDepth(Runtime& runtime, const Value& a, const Value& b, int depth) {
  if (depth > kDataDepthMax) {
    return absl::ResourceExhaustedError(
        Joined("the data is nested deeper than the limit of ", kDataDepthMax));
  }
  RETURN_IF_ERROR(runtime.Spend(1));
  if (a.Is(Kind::kSequence) && b.Is(Kind::kSequence)) {
    return SequencesEqual(runtime, a, b, depth);
  }
  if (a.Is(Kind::kRange) && b.Is(Kind::kRange)) {
    const Range* left = static_cast<const Range*>(a.object());
    const Range* right = static_cast<const Range*>(b.object());
    return left->start == right->start && left->stop == right->stop && left->step == right->step;
  }
  if (!a.Is(Kind::kMap) || !b.Is(Kind::kMap)) {
    if (a.IsString() && b.IsString()) {
      RETURN_IF_ERROR(runtime.SpendBytes(std::min(a.text().footprint(), b.text().footprint())));
    }
    return KeysEqual(a, b);
  }
  const Map& left = *a.AsMap();
  const Map& right = *b.AsMap();
  if (left.entries.size() != right.entries.size()) {
    return false;
  }
  for (const auto& [key, value] : left.entries) {
    const Value* other = right.Find(key);
    if (other == nullptr) {
      return false;
    }
    ASSIGN_OR_RETURN(const bool is_equal, EqualsAtDepth(runtime, value, *other, depth + 1));
    if (!is_equal) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<bool> SequencesEqual(Runtime& runtime, const Value& a, const Value& b, int depth) {
  const Sequence& left = *a.AsSequence();
  const Sequence& right = *b.AsSequence();
  const bool same_type =
      (left.flavor == SequenceFlavor::kGroup ? SequenceFlavor::kTuple : left.flavor) ==
      (right.flavor == SequenceFlavor::kGroup ? SequenceFlavor::kTuple : right.flavor);
  if (!same_type || left.flavor == SequenceFlavor::kGenerator) {
    return &left == &right;
  }
  if (left.items.size() != right.items.size()) {
    return false;
  }
  for (size_t i = 0; i < left.items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool is_equal,
                     EqualsAtDepth(runtime, left.items[i], right.items[i], depth + 1));
    if (!is_equal) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<int> OrderAtDepth(Runtime& runtime, const Value& a, const Value& b,
                                 Operator operation, int depth) {
  if (depth > kDataDepthMax) {
    return absl::ResourceExhaustedError(
        Joined("the data is nested deeper than the limit of ", kDataDepthMax));
  }
  RETURN_IF_ERROR(RequireDefined(a));
  RETURN_IF_ERROR(RequireDefined(b));
  RETURN_IF_ERROR(runtime.Spend(1));
  if (a.IsWhole() && b.IsWhole()) {
    return a.AsInteger() < b.AsInteger() ? -1 : a.AsInteger() > b.AsInteger() ? 1 : 0;
  }
  if (a.IsNumber() && b.IsNumber()) {
    return a.AsDouble() < b.AsDouble() ? -1 : a.AsDouble() > b.AsDouble() ? 1 : 0;
  }
  if (a.IsString() && b.IsString()) {
    RETURN_IF_ERROR(runtime.SpendBytes(std::min(a.text().footprint(), b.text().footprint())));
    const int order = a.bytes().compare(b.bytes());  // UTF-8 orders like code points
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  const Sequence* left = a.AsSequence();
  const Sequence* right = b.AsSequence();
  const bool are_sequences =
      left != nullptr && right != nullptr && left->IsIndexable() && right->IsIndexable() &&
      (left->flavor == SequenceFlavor::kList) == (right->flavor == SequenceFlavor::kList);
  if (!are_sequences) {
    return TemplateError("'", SignOf(operation), "' is not defined between '", TypeName(a),
                         "' and '", TypeName(b), "'");
  }
  for (size_t i = 0; i < left->items.size() && i < right->items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool is_equal,
                     EqualsAtDepth(runtime, left->items[i], right->items[i], depth + 1));
    if (!is_equal) {
      return OrderAtDepth(runtime, left->items[i], right->items[i], operation, depth + 1);
    }
  }
  return left->items.size() < right->items.size() ? -1 : left->items.size() > right->items.size();
}

bool IsNan(const Value& value) { return value.Is(Kind::kFloat) && std::isnan(value.real()); }

absl::StatusOr<bool> Contains(Runtime& runtime, const Value& container, const Value& item) {
  if (container.IsString()) {
    if (!item.IsString()) {
      RETURN_IF_ERROR(RequireDefined(item));
      return TemplateError("'in <string>' needs a string on its left, not ", TypeName(item));
    }
    RETURN_IF_ERROR(runtime.SpendBytes(container.text().footprint()));
    return container.bytes().find(item.bytes()) != std::string_view::npos;
  }
  if (const Map* map = container.AsMap(); map != nullptr) {
    if (!IsHashable(item)) {
      return TemplateError("unhashable type: '", TypeName(item), "'");
    }
    RETURN_IF_ERROR(
        runtime.Spend(1 + (item.IsString() ? 0 : static_cast<int64_t>(map->entries.size()))));
    return map->Find(item) != nullptr;
  }
  if (container.Is(Kind::kRange) && item.IsWhole()) {
    const Range* range = static_cast<const Range*>(container.object());
    const Integer distance = item.AsInteger() - range->start;
    return distance % range->step == 0 && distance / range->step >= 0 &&
           distance / range->step < range->size();
  }
  if (!container.IsUndefined() && !container.Is(Kind::kSequence) && !container.Is(Kind::kRange)) {
    return TemplateError("argument of type '", TypeName(container), "' is not iterable");
  }
  ASSIGN_OR_RETURN(const std::vector<Value> items, runtime.Iterate(container));
  for (const Value& candidate : items) {
    ASSIGN_OR_RETURN(const bool is_equal, Equals(runtime, candidate, item));
    if (is_equal) {
      return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> Compare(Runtime& runtime, Operator operation, const Value& a, const Value& b) {
  switch (operation) {
    case Operator::kEqual:
      return Equals(runtime, a, b);
    case Operator::kNotEqual: {
      ASSIGN_OR_RETURN(const bool is_equal, Equals(runtime, a, b));
      return !is_equal;
    }
    case Operator::kIn:
      return Contains(runtime, b, a);
    case Operator::kNotIn: {
      ASSIGN_OR_RETURN(const bool is_in, Contains(runtime, b, a));
      return !is_in;
    }
    default:
      break;
  }
  ASSIGN_OR_RETURN(const int order, OrderAtDepth(runtime, a, b, operation, 0));
  if (IsNan(a) || IsNan(b)) {
    return false;
  }
  switch (operation) {
    case Operator::kLess:
      return order < 0;
    case Operator::kLessEqual:
      return order <= 0;
    case Operator::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

absl::StatusOr<bool> Equals(Runtime& runtime, const Value& a, const Value& b) {
  return EqualsAtDepth(runtime, a, b, 0);
}

absl::StatusOr<int> Order(Runtime& runtime, const Value& a, const Value& b) {
  return OrderAtDepth(runtime, a, b, Operator::kLess, 0);
}

}  // namespace trireme::text::jinja
