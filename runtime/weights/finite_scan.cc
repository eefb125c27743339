#include "runtime/weights/finite_scan.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/formats/all_formats.h"
#include "kernels/formats/weight_group.h"
#include "topology/partition.h"

namespace trireme::weights {
namespace {

using kernels::GroupTraits;
using kernels::InfoOf;
using kernels::ScaleKind;
using kernels::WeightFormat;

constexpr int64_t kRun = 128;  // floats that are looked at together, in vectors

// All exponent bits are set in NaN and the infinities, and in nothing else.
constexpr uint32_t kFloatExponent = 0x7F800000U;
constexpr uint16_t kHalfExponent = 0x7C00U;
constexpr uint16_t kBFloat16Exponent = 0x7F80U;

template <typename Word, int64_t kCount>
bool HasExponent(const std::byte* source, Word exponent) {
  Word words[kCount];
  std::memcpy(words, source, sizeof(words));
  Word most = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    most = std::max(most, static_cast<Word>(words[i] & exponent));
  }
  return most == exponent;
}

template <typename Word>
bool HasExponent(const std::byte* source, int64_t count, Word exponent) {
  bool found = false;
  for (; count >= kRun; count -= kRun) {
    found = found || HasExponent<Word, kRun>(source, exponent);
    source += kRun * static_cast<int64_t>(sizeof(Word));
  }
  for (; count > 0; --count) {
    found = found || HasExponent<Word, 1>(source, exponent);
    source += sizeof(Word);
  }
  return found;
}

// `row` begins at the first of `columns` values.
bool HasBadFloat(WeightFormat format, const std::byte* row, int64_t columns) {
  if (format == WeightFormat::kF32) {
    return HasExponent<uint32_t>(row, columns, kFloatExponent);
  }
  return HasExponent<uint16_t>(row, columns,
                               format == WeightFormat::kF16 ? kHalfExponent : kBFloat16Exponent);
}

bool IsBadHalf(uint16_t bits) { return (bits & kHalfExponent) == kHalfExponent; }

// Whether a block may hold such a value: by its scales, which its groups share where the format has
// superblocks; else it has one group, or two whose scales are always finite.
template <typename Block>
bool MayBeBad(const Block& block) {
  constexpr GroupTraits kTraits = Block::kTraits;
  if constexpr (kTraits.scales == ScaleKind::kHalfGroupE4M3) {
    return false;
  } else if constexpr (kTraits.scales == ScaleKind::kExponent) {
    constexpr uint8_t kLargeExponent = 250;  // below it the largest number of a codebook is finite
    return block.Group(0).factors[0] > kLargeExponent;
  } else {
    static_assert(kernels::HasSuperblocks(kTraits) ||
                  InfoOf(Block::kFormat).storage_values == kernels::kGroupValues);
    const kernels::WeightGroup group = block.Group(0);
    return IsBadHalf(group.scale_bits) || (kTraits.has_minimum && IsBadHalf(group.minimum_bits));
  }
}

// The first such column of [first, end) of a block that may hold one, or `end`.
template <typename Block>
int FirstBadColumn(const Block& block, int first, int end) {
  while (first < end && std::isfinite(block.Value(first))) {
    ++first;
  }
  return first;
}

// `row` is the row's storage from column 0 on; the column found counts from there too.
template <typename Block>
std::optional<BadValue> FindInRow(const std::byte* row, topology::Range columns) {
  constexpr int64_t kValues = InfoOf(Block::kFormat).storage_values;
  for (int64_t index = columns.begin / kValues; index * kValues < columns.end; ++index) {
    Block block;
    std::memcpy(&block, row + index * static_cast<int64_t>(sizeof(Block)), sizeof(Block));
    if constexpr (InfoOf(Block::kFormat).is_quantized) {
      if (!MayBeBad(block)) {
        continue;
      }
    }
    const auto first = static_cast<int>(std::max(columns.begin - index * kValues, int64_t{0}));
    const auto end = static_cast<int>(std::min(columns.end - index * kValues, kValues));
    const int column = FirstBadColumn(block, first, end);
    if (column < end) {
      return BadValue{.column = index * kValues + column, .value = block.Value(column)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<BadValue> FindBadValue(const kernels::PackArgs& args) {
  const kernels::SliceShape& shape = args.shape;
  const kernels::WeightFormatInfo& info = InfoOf(shape.format);
  for (int64_t row_index = 0; row_index < shape.rows; ++row_index) {
    const std::byte* const row = args.source + row_index * args.source_row_bytes;
    if (info.storage_values == 1 &&
        !HasBadFloat(shape.format, row + shape.first_column * info.storage_bytes, shape.columns)) {
      continue;
    }
    std::optional<BadValue> found = kernels::VisitFormat(shape.format, [&](auto block) {
      return FindInRow<decltype(block)>(row,
                                        {shape.first_column, shape.first_column + shape.columns});
    });
    if (found.has_value()) {
      found->row = row_index;
      found->column -= shape.first_column;
      return found;
    }
  }
  return std::nullopt;
}

bool AreFinite(absl::Span<const float> values) {
  return !HasExponent<uint32_t>(reinterpret_cast<const std::byte*>(values.data()),
                                static_cast<int64_t>(values.size()), kFloatExponent);
}

std::optional<BadValue> FindBadValue(absl::Span<const float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      return BadValue{.column = static_cast<int64_t>(i), .value = values[i]};
    }
  }
  return std::nullopt;
}

}  // namespace trireme::weights
