#include "runtime/text/jinja_sequence_filters.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_arithmetic.h"
#include "runtime/text/jinja_elements.h"
#include "runtime/text/jinja_path.h"
#include "runtime/text/jinja_print.h"
#include "runtime/text/jinja_tests.h"

namespace trireme::text::jinja {
namespace {

using Result = absl::StatusOr<Value>;

Result Sum(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("sum", arguments, {"attribute", "start"}));
  ASSIGN_OR_RETURN(const std::vector<Value> items, runtime.Iterate(value));
  Value total = bound[1] != nullptr ? *bound[1] : Value::Of(Integer{0});
  for (const Value& item : items) {
    Value term = item;
    if (bound[0] != nullptr && !bound[0]->Is(Kind::kNone)) {
      ASSIGN_OR_RETURN(term, FollowPath(runtime, item, *bound[0]));
    }
    ASSIGN_OR_RETURN(total, Arithmetic(runtime, Operator::kAdd, total, term));
  }
  return total;
}

Result First(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("first", arguments, {}).status());
  ASSIGN_OR_RETURN(std::vector<Value> items, runtime.Iterate(value));
  return items.empty() ? EmptyUndefined("there is no first item: the sequence is empty")
                       : items.front();
}

Result Last(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("last", arguments, {}).status());
  if (value.Is(Kind::kSequence) && value.AsSequence()->flavor == SequenceFlavor::kGenerator) {
    return TemplateError("last needs a list; this sequence can only be gone through forwards");
  }
  ASSIGN_OR_RETURN(std::vector<Value> items, runtime.Iterate(value));
  return items.empty() ? EmptyUndefined("there is no last item: the sequence is empty")
                       : items.back();
}

Result LengthFilter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("length", arguments, {}).status());
  ASSIGN_OR_RETURN(const int64_t length, Length(runtime, value));
  return Value::Of(Integer{length});
}

Result ListFilter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("list", arguments, {}).status());
  ASSIGN_OR_RETURN(std::vector<Value> items, runtime.Iterate(value));
  return runtime.List(std::move(items));
}

Result ItemsFilter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("items", arguments, {}).status());
  std::vector<Value> items;
  if (!value.IsUndefined()) {
    const Map* map = value.AsMap();
    if (map == nullptr) {
      return TemplateError("items needs a mapping, not ", TypeName(value));
    }
    for (const auto& [key, item] : map->entries) {
      ASSIGN_OR_RETURN(Value pair, runtime.List({key, item}, SequenceFlavor::kTuple));
      items.push_back(std::move(pair));
    }
  }
  return runtime.List(std::move(items), SequenceFlavor::kGenerator);
}

Result Reverse(Runtime& runtime, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(BindArguments("reverse", arguments, {}).status());
  if (value.IsString()) {
    return Slice(runtime, value, Value::None(), Value::None(), Value::Of(Integer{-1}));
  }
  ASSIGN_OR_RETURN(std::vector<Value> items, runtime.Iterate(value));
  std::reverse(items.begin(), items.end());
  return runtime.List(std::move(items), SequenceFlavor::kGenerator);
}

Result Join(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("join", arguments, {"d", "attribute"}));
  ASSIGN_OR_RETURN(const std::vector<Value> items, runtime.Iterate(value));
  TracedText separator;
  if (bound[0] != nullptr) {
    ASSIGN_OR_RETURN(separator, ToText(runtime, *bound[0]));
  }
  TracedText joined;
  for (size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];
    if (bound[1] != nullptr && !bound[1]->Is(Kind::kNone)) {
      ASSIGN_OR_RETURN(item, FollowPath(runtime, items[i], *bound[1]));
    }
    ASSIGN_OR_RETURN(const TracedText text, ToText(runtime, item));
    RETURN_IF_ERROR(runtime.SpendGrowth(joined, separator.footprint() + text.footprint()));
    if (i > 0) {
      joined.Append(separator);
    }
    joined.Append(text);
  }
  return runtime.String(std::move(joined));
}

Result Batch(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("batch", arguments, {"linecount", "fill_with"}));
  ASSIGN_OR_RETURN(const Integer count, IntegerOr("batch", bound[0], 0));
  if (count <= 0) {
    return TemplateError("batch needs a positive number of items");
  }
  ASSIGN_OR_RETURN(const std::vector<Value> items, runtime.Iterate(value));
  const bool fills = bound[1] != nullptr && !bound[1]->Is(Kind::kNone);
  RETURN_IF_ERROR(runtime.SpendProduct(fills ? count : 0, sizeof(Value)));
  std::vector<Value> batches;
  for (size_t begin = 0; begin < items.size();) {
    const size_t size =
        static_cast<size_t>(std::min<Integer>(count, static_cast<Integer>(items.size() - begin)));
    const auto first = items.begin() + static_cast<std::ptrdiff_t>(begin);
    std::vector<Value> batch(first, first + static_cast<std::ptrdiff_t>(size));
    if (fills) {
      batch.resize(static_cast<size_t>(count), *bound[1]);
    }
    ASSIGN_OR_RETURN(Value list, runtime.List(std::move(batch)));
    batches.push_back(std::move(list));
    begin += size;
  }
  return runtime.List(std::move(batches), SequenceFlavor::kGenerator);
}

Result SliceFilter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("slice", arguments, {"slices", "fill_with"}));
  ASSIGN_OR_RETURN(const Integer slices, IntegerOr("slice", bound[0], 0));
  if (slices <= 0) {
    return TemplateError("slice needs a positive number of slices");
  }
  ASSIGN_OR_RETURN(const std::vector<Value> items, runtime.Iterate(value));
  RETURN_IF_ERROR(runtime.SpendProduct(slices, 2 * sizeof(Value)));
  const size_t count = static_cast<size_t>(slices);
  const size_t with_extra = items.size() % count;
  const bool fills = bound[1] != nullptr && !bound[1]->Is(Kind::kNone);
  std::vector<Value> lists;
  auto next = items.begin();
  for (size_t i = 0; i < count; ++i) {
    const size_t size = items.size() / count + (i < with_extra ? 1 : 0);
    std::vector<Value> part(next, next + static_cast<std::ptrdiff_t>(size));
    next += static_cast<std::ptrdiff_t>(size);
    if (fills && i >= with_extra) {
      part.push_back(*bound[1]);
    }
    ASSIGN_OR_RETURN(Value list, runtime.List(std::move(part)));
    lists.push_back(std::move(list));
  }
  return runtime.List(std::move(lists), SequenceFlavor::kGenerator);
}

// --- map, select, reject ---

Result MapAttribute(Runtime& runtime, const std::vector<Value>& items, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("map", arguments, {"attribute", "default"}));
  std::vector<Value> mapped;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(Value element, FollowPath(runtime, item, *bound[0]));
    if (element.IsUndefined() && bound[1] != nullptr) {
      element = *bound[1];
    }
    mapped.push_back(std::move(element));
  }
  return runtime.List(std::move(mapped), SequenceFlavor::kGenerator);
}

Result MapFilter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  if (!IsTrue(value)) {  // none too, which cannot be gone through otherwise
    return runtime.List({}, SequenceFlavor::kGenerator);
  }
  ASSIGN_OR_RETURN(const std::vector<Value> items, runtime.Iterate(value));
  if (arguments.positional.empty()) {
    const bool has_attribute =
        std::any_of(arguments.keywords.begin(), arguments.keywords.end(),
                    [](const auto& keyword) { return keyword.first.bytes() == "attribute"; });
    if (!has_attribute) {
      return TemplateError("map needs the name of a filter, or attribute=");
    }
    return MapAttribute(runtime, items, arguments);
  }
  const Value& name = arguments.positional.front();
  if (!name.IsString()) {
    return TemplateError("map needs the name of a filter, not ", TypeName(name));
  }
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  std::vector<Value> mapped;
  for (const Value& item : items) {
    RETURN_IF_ERROR(runtime.Spend(1));
    ASSIGN_OR_RETURN(Value result, ApplyFilter(runtime, name.bytes(), item, rest));
    mapped.push_back(std::move(result));
  }
  return runtime.List(std::move(mapped), SequenceFlavor::kGenerator);
}

struct Selection {
  bool by_attribute;
  bool keeps;  // what the test says of the items that stay
};

Result SelectWith(Runtime& runtime, const Value& value, const Arguments& arguments,
                  Selection selection) {
  if (!IsTrue(value)) {  // none too, which cannot be gone through otherwise
    return runtime.List({}, SequenceFlavor::kGenerator);
  }
  ASSIGN_OR_RETURN(const std::vector<Value> items, runtime.Iterate(value));
  Arguments rest = arguments;
  Value attribute;
  if (selection.by_attribute) {
    if (rest.positional.empty()) {
      return TemplateError("selectattr and rejectattr need the name of an attribute");
    }
    attribute = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
  }
  TestFunction test = nullptr;
  if (!rest.positional.empty()) {
    const Value name = rest.positional.front();
    test = name.IsString() ? FindTest(name.bytes()) : nullptr;
    if (test == nullptr) {
      ASSIGN_OR_RETURN(const TracedText text, ToText(runtime, name));
      return TemplateError("there is no test named '", text.bytes(), "'");
    }
    rest.positional.erase(rest.positional.begin());
  }
  std::vector<Value> selected;
  for (const Value& item : items) {
    RETURN_IF_ERROR(runtime.Spend(1));
    Value subject = item;
    if (selection.by_attribute) {
      ASSIGN_OR_RETURN(subject, FollowPath(runtime, item, attribute));
    }
    bool holds = IsTrue(subject);
    if (test != nullptr) {
      ASSIGN_OR_RETURN(holds, test(runtime, subject, rest));
    }
    if (holds == selection.keeps) {
      selected.push_back(item);
    }
  }
  return runtime.List(std::move(selected), SequenceFlavor::kGenerator);
}

template <bool by_attribute, bool keeps>
Result Select(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return SelectWith(runtime, value, arguments, {by_attribute, keeps});
}

constexpr FilterEntry kSequenceFilters[] = {
    {"batch", Batch},
    {"count", LengthFilter},
    {"first", First},
    {"items", ItemsFilter},
    {"join", Join},
    {"last", Last},
    {"length", LengthFilter},
    {"list", ListFilter},
    {"map", MapFilter},
    {"reject", Select<false, false>},
    {"rejectattr", Select<true, false>},
    {"reverse", Reverse},
    {"select", Select<false, true>},
    {"selectattr", Select<true, true>},
    {"slice", SliceFilter},
    {"sum", Sum},
};

}  // namespace

absl::Span<const FilterEntry> SequenceFilters() { return kSequenceFilters; }

}  // namespace trireme::text::jinja
