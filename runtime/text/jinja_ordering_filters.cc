#include "runtime/text/jinja_ordering_filters.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_comparison.h"
#include "runtime/text/jinja_path.h"
#include "runtime/text/jinja_string_methods.h"

namespace trireme::text::jinja {
namespace {

using Result = absl::StatusOr<Value>;

Result IgnoreCase(Runtime& runtime, const Value& value, bool is_case_sensitive) {
  if (is_case_sensitive || !value.IsString()) {
    return value;
  }
  return runtime.String(ChangeCase(value.text(), LetterCase::kLower));
}

struct Keyed {
  Value key;
  Value item;
};

// Merge sort by key; equal keys keep their order, in either direction. A comparison may fail, which
// std::stable_sort cannot.
absl::Status SortKeyed(Runtime& runtime, std::vector<Keyed>& items, bool is_descending) {
  RETURN_IF_ERROR(runtime.SpendProduct(static_cast<Integer>(items.size()), 2 * sizeof(Keyed)));
  std::vector<Keyed> merged(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, items.size());
      const size_t end = std::min(begin + 2 * width, items.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t out = begin; out < end; ++out) {
        bool takes_right = left == middle;
        if (left < middle && right < end) {
          ASSIGN_OR_RETURN(const int order, Order(runtime, items[right].key, items[left].key));
          takes_right = is_descending ? order > 0 : order < 0;
        }
        merged[out] = std::move(takes_right ? items[right++] : items[left++]);
      }
    }
    items.swap(merged);
  }
  return absl::OkStatus();
}

// The key of an item for sort, min and max: the attribute (several with commas), or the item.
Result SortKey(Runtime& runtime, const Value& item, const Value* attribute,
               bool is_case_sensitive) {
  if (attribute == nullptr || attribute->Is(Kind::kNone)) {
    return IgnoreCase(runtime, item, is_case_sensitive);
  }
  if (!attribute->IsString() || attribute->bytes().find(',') == std::string_view::npos) {
    ASSIGN_OR_RETURN(const Value key, FollowPath(runtime, item, *attribute));
    return IgnoreCase(runtime, key, is_case_sensitive);
  }
  std::vector<Value> keys;
  for (const std::string_view part : SplitAt(attribute->bytes(), ',')) {
    ASSIGN_OR_RETURN(const Value path, runtime.String(std::string(part), Origin::kTrusted));
    ASSIGN_OR_RETURN(const Value key, FollowPath(runtime, item, path));
    ASSIGN_OR_RETURN(Value folded, IgnoreCase(runtime, key, is_case_sensitive));
    keys.push_back(std::move(folded));
  }
  return runtime.List(std::move(keys));
}

absl::StatusOr<std::vector<Keyed>> KeyItems(Runtime& runtime, const Value& value,
                                            const Value* attribute, bool is_case_sensitive) {
  ASSIGN_OR_RETURN(const std::vector<Value> items, runtime.Iterate(value));
  RETURN_IF_ERROR(runtime.SpendProduct(static_cast<Integer>(items.size()), sizeof(Keyed)));
  std::vector<Keyed> keyed;
  keyed.reserve(items.size());
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(Value key, SortKey(runtime, item, attribute, is_case_sensitive));
    keyed.push_back({std::move(key), item});
  }
  return keyed;
}

Result Sort(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BindArguments("sort", arguments, {"reverse", "case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(std::vector<Keyed> keyed,
                   KeyItems(runtime, value, bound[2], IsTrueArgument(bound[1])));
  RETURN_IF_ERROR(SortKeyed(runtime, keyed, IsTrueArgument(bound[0])));
  std::vector<Value> items;
  for (Keyed& entry : keyed) {
    items.push_back(std::move(entry.item));
  }
  return runtime.List(std::move(items));
}

Result DictionarySort(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BindArguments("dictsort", arguments, {"case_sensitive", "by", "reverse"}));
  RETURN_IF_ERROR(RequireDefined(value));
  const Map* map = value.AsMap();
  if (map == nullptr) {
    return TemplateError("dictsort needs a mapping, not ", TypeName(value));
  }
  const std::string_view by =
      bound[1] != nullptr && bound[1]->IsString() ? bound[1]->bytes() : "key";
  if (by != "key" && by != "value") {
    return TemplateError("dictsort: 'by' must be 'key' or 'value'");
  }
  std::vector<Keyed> keyed;
  for (const auto& [key, item] : map->entries) {
    ASSIGN_OR_RETURN(Value pair, runtime.List({key, item}, SequenceFlavor::kTuple));
    ASSIGN_OR_RETURN(Value sort_key,
                     IgnoreCase(runtime, by == "key" ? key : item, IsTrueArgument(bound[0])));
    keyed.push_back({std::move(sort_key), std::move(pair)});
  }
  RETURN_IF_ERROR(SortKeyed(runtime, keyed, IsTrueArgument(bound[2])));
  std::vector<Value> items;
  for (Keyed& entry : keyed) {
    items.push_back(std::move(entry.item));
  }
  return runtime.List(std::move(items));
}

Result Unique(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BindArguments("unique", arguments, {"case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(std::vector<Keyed> keyed,
                   KeyItems(runtime, value, bound[1], IsTrueArgument(bound[0])));
  Map seen;
  std::vector<Value> items;
  for (Keyed& entry : keyed) {
    if (!IsHashable(entry.key)) {
      return TemplateError("unhashable type: '", TypeName(entry.key), "'");
    }
    RETURN_IF_ERROR(
        runtime.Spend(entry.key.IsString() ? 4 : 4 + static_cast<int64_t>(seen.entries.size())));
    if (seen.Find(entry.key) == nullptr) {
      seen.AppendNew(entry.key, Value::None());
      items.push_back(std::move(entry.item));
    }
  }
  return runtime.List(std::move(items), SequenceFlavor::kGenerator);
}

Result Extreme(Runtime& runtime, const Value& value, const Arguments& arguments,
               std::string_view name, int sign) {
  ASSIGN_OR_RETURN(const auto bound,
                   BindArguments(name, arguments, {"case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(std::vector<Keyed> keyed,
                   KeyItems(runtime, value, bound[1], IsTrueArgument(bound[0])));
  if (keyed.empty()) {
    return EmptyUndefined("there is no smallest or largest item: the sequence is empty");
  }
  size_t best = 0;
  for (size_t i = 1; i < keyed.size(); ++i) {
    ASSIGN_OR_RETURN(const int order, Order(runtime, keyed[i].key, keyed[best].key));
    best = order * sign > 0 ? i : best;
  }
  return keyed[best].item;
}

Result Minimum(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return Extreme(runtime, value, arguments, "min", -1);
}

Result Maximum(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return Extreme(runtime, value, arguments, "max", 1);
}

Result GroupBy(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BindArguments("groupby", arguments, {"attribute", "default", "case_sensitive"}));
  if (bound[0] == nullptr) {
    return TemplateError("groupby needs the attribute to group by");
  }
  ASSIGN_OR_RETURN(const std::vector<Value> items, runtime.Iterate(value));
  std::vector<Keyed> keyed;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(Value key, FollowPath(runtime, item, *bound[0]));
    if (key.IsUndefined() && bound[1] != nullptr) {
      key = *bound[1];
    }
    ASSIGN_OR_RETURN(key, IgnoreCase(runtime, key, IsTrueArgument(bound[2])));
    keyed.push_back({std::move(key), item});
  }
  RETURN_IF_ERROR(SortKeyed(runtime, keyed, /*is_descending=*/false));
  std::vector<Value> groups;
  for (size_t begin = 0; begin < keyed.size();) {
    std::vector<Value> members;
    size_t end = begin;
    bool is_same = true;
    while (is_same) {
      members.push_back(keyed[end++].item);
      is_same = end < keyed.size();
      if (is_same) {
        ASSIGN_OR_RETURN(is_same, Equals(runtime, keyed[begin].key, keyed[end].key));
      }
    }
    // The group's name as its first member spells it.
    ASSIGN_OR_RETURN(Value grouper, FollowPath(runtime, members.front(), *bound[0]));
    if (grouper.IsUndefined()) {
      grouper = keyed[begin].key;
    }
    ASSIGN_OR_RETURN(Value list, runtime.List(std::move(members)));
    ASSIGN_OR_RETURN(Value group, runtime.List({grouper, list}, SequenceFlavor::kGroup));
    groups.push_back(std::move(group));
    begin = end;
  }
  return runtime.List(std::move(groups));
}

constexpr FilterEntry kOrderingFilters[] = {
    {"dictsort", DictionarySort},
    {"groupby", GroupBy},
    {"max", Maximum},
    {"min", Minimum},
    {"sort", Sort},
    {"unique", Unique},
};

}  // namespace

absl::Span<const FilterEntry> OrderingFilters() { return kOrderingFilters; }

}  // namespace trireme::text::jinja
