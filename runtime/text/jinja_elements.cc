#include "runtime/text/jinja_elements.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

// The bounds of a slice over `length` items, as Python clamps them.
struct SliceBounds {
  Integer start;
  Integer stop;
  Integer step;
};

absl::StatusOr<std::pair<bool, Integer>> SliceIndex(const Value& value) {
  if (value.Is(Kind::kNone)) {
    return std::pair<bool, Integer>(false, 0);
  }
  RETURN_IF_ERROR(RequireDefined(value));
  if (!value.IsWhole()) {
    return TemplateError("slice bounds must be integers or none, not ", TypeName(value));
  }
  return std::pair<bool, Integer>(true, value.AsInteger());
}

Integer ClampBound(Integer bound, Integer length, bool is_backward) {
  if (bound < 0) {
    bound += length;
    return bound < 0 ? (is_backward ? -1 : 0) : bound;
  }
  return bound >= length ? (is_backward ? length - 1 : length) : bound;
}

absl::StatusOr<SliceBounds> ComputeBounds(Integer length, const Value& start, const Value& stop,
                                          const Value& step) {
  ASSIGN_OR_RETURN(const auto first, SliceIndex(start));
  ASSIGN_OR_RETURN(const auto last, SliceIndex(stop));
  ASSIGN_OR_RETURN(const auto stride, SliceIndex(step));
  // A longer stride than this reaches beyond any text or list.
  constexpr Integer kStrideMax = Integer{1} << 62;
  SliceBounds bounds{};
  bounds.step = stride.first ? std::clamp(stride.second, -kStrideMax, kStrideMax) : 1;
  if (bounds.step == 0) {
    return TemplateError("slice step cannot be zero");
  }
  const bool is_backward = bounds.step < 0;
  bounds.start = first.first ? ClampBound(first.second, length, is_backward)
                             : (is_backward ? length - 1 : Integer{0});
  bounds.stop = last.first ? ClampBound(last.second, length, is_backward)
                           : (is_backward ? Integer{-1} : length);
  return bounds;
}

// Calls visit(index) for each index in the slice.
template <typename Visit>
absl::Status ForEachIndex(const SliceBounds& bounds, Visit visit) {
  for (Integer i = bounds.start; bounds.step > 0 ? i < bounds.stop : i > bounds.stop;
       i += bounds.step) {
    RETURN_IF_ERROR(visit(static_cast<size_t>(i)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> SliceString(Runtime& runtime, const Value& owner, const Value& start,
                                  const Value& stop, const Value& step) {
  const std::string_view bytes = owner.bytes();
  RETURN_IF_ERROR(runtime.SpendBytes(bytes.size()));
  const Integer length = CountCharacters(bytes);
  ASSIGN_OR_RETURN(const SliceBounds bounds, ComputeBounds(length, start, stop, step));
  if (bounds.step == 1) {
    const int64_t characters =
        static_cast<int64_t>(std::max(bounds.stop - bounds.start, Integer{0}));
    const size_t begin = OffsetOfCharacter(bytes, static_cast<int64_t>(bounds.start));
    const size_t size = OffsetOfCharacter(bytes.substr(begin), characters);
    return runtime.String(owner.text().Slice(begin, begin + size), owner.string().flavor);
  }
  RETURN_IF_ERROR(runtime.SpendProduct(length, sizeof(size_t)));
  std::vector<size_t> offsets;
  offsets.reserve(static_cast<size_t>(length) + 1);
  for (size_t offset = 0; offset < bytes.size(); offset += DecodeAt(bytes, offset).bytes) {
    offsets.push_back(offset);
  }
  offsets.push_back(bytes.size());
  TracedText slice;
  RETURN_IF_ERROR(ForEachIndex(bounds, [&](size_t index) {
    slice.AppendSlice(owner.text(), offsets[index], offsets[index + 1]);
    return absl::OkStatus();
  }));
  return runtime.String(std::move(slice), owner.string().flavor);
}

Value MissingElement(const Value& owner, const Value& key) {
  const UndefinedData::Reason reason =
      key.IsString() ? UndefinedData::Reason::kAttribute : UndefinedData::Reason::kElement;
  return Value::Undefined(
      std::make_shared<const UndefinedData>(UndefinedData{reason, TypeName(owner), key}));
}

// The position of item `index` counted from either end, or -1.
int64_t PositionOf(Integer index, Integer length) {
  const Integer position = index < 0 ? index + length : index;
  return position < 0 || position >= length ? -1 : static_cast<int64_t>(position);
}

}  // namespace

absl::StatusOr<Value> Element(Runtime& runtime, const Value& owner, const Value& key) {
  RETURN_IF_ERROR(RequireDefined(owner));
  if (const Map* map = owner.AsMap(); map != nullptr) {
    if (!IsHashable(key)) {
      return MissingElement(owner, key);
    }
    RETURN_IF_ERROR(runtime.Spend(key.IsString() ? 1 : static_cast<int64_t>(map->entries.size())));
    const Value* found = map->Find(key);
    return found != nullptr ? *found : MissingElement(owner, key);
  }
  if (!key.IsWhole()) {
    return MissingElement(owner, key);
  }
  if (owner.IsString()) {
    RETURN_IF_ERROR(runtime.SpendBytes(owner.text().footprint()));
    const int64_t position = PositionOf(key.AsInteger(), CountCharacters(owner.bytes()));
    if (position < 0) {
      return MissingElement(owner, key);
    }
    const size_t begin = OffsetOfCharacter(owner.bytes(), position);
    return runtime.String(owner.text().Slice(begin, begin + DecodeAt(owner.bytes(), begin).bytes),
                          owner.string().flavor);
  }
  if (const Sequence* sequence = owner.AsSequence();
      sequence != nullptr && sequence->IsIndexable()) {
    const int64_t position =
        PositionOf(key.AsInteger(), static_cast<Integer>(sequence->items.size()));
    return position < 0 ? MissingElement(owner, key)
                        : sequence->items[static_cast<size_t>(position)];
  }
  if (owner.Is(Kind::kRange)) {
    const Range* range = static_cast<const Range*>(owner.object());
    const int64_t position = PositionOf(key.AsInteger(), range->size());
    return position < 0 ? MissingElement(owner, key) : range->At(position);
  }
  return MissingElement(owner, key);
}

absl::StatusOr<Value> Slice(Runtime& runtime, const Value& owner, const Value& start,
                            const Value& stop, const Value& step) {
  RETURN_IF_ERROR(RequireDefined(owner));
  if (owner.IsString()) {
    return SliceString(runtime, owner, start, stop, step);
  }
  const Sequence* sequence = owner.AsSequence();
  const bool is_range = owner.Is(Kind::kRange);
  if (!is_range && (sequence == nullptr || !sequence->IsIndexable())) {
    return TemplateError("a value of type '", TypeName(owner), "' cannot be sliced");
  }
  const std::vector<Value>* items = sequence == nullptr ? nullptr : &sequence->items;
  std::vector<Value> range_items;
  if (is_range) {
    ASSIGN_OR_RETURN(range_items, runtime.Iterate(owner));
    items = &range_items;
  }
  ASSIGN_OR_RETURN(const SliceBounds bounds,
                   ComputeBounds(static_cast<Integer>(items->size()), start, stop, step));
  std::vector<Value> slice;
  RETURN_IF_ERROR(ForEachIndex(bounds, [&](size_t index) {
    slice.push_back((*items)[index]);
    return runtime.Spend(1);
  }));
  return runtime.List(std::move(slice), sequence == nullptr ? SequenceFlavor::kList
                                        : sequence->flavor == SequenceFlavor::kGroup
                                            ? SequenceFlavor::kTuple
                                            : sequence->flavor);
}

absl::StatusOr<int64_t> Length(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      RETURN_IF_ERROR(runtime.SpendBytes(value.text().footprint()));
      return CountCharacters(value.bytes());
    case Kind::kSequence:
      if (value.AsSequence()->flavor != SequenceFlavor::kGenerator) {
        return static_cast<int64_t>(value.AsSequence()->items.size());
      }
      break;
    case Kind::kMap:
      return static_cast<int64_t>(value.AsMap()->entries.size());
    case Kind::kRange:
      return static_cast<const Range*>(value.object())->size();
    case Kind::kLoop:
      return static_cast<int64_t>(static_cast<const Loop*>(value.object())->items.size());
    default:
      break;
  }
  return TemplateError("a value of type '", TypeName(value), "' has no length");
}

}  // namespace trireme::text::jinja
