#include "runtime/text/precompiled_map.h"

#include <utf8proc.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

constexpr size_t kUnitBytes = 4;
constexpr size_t kWholeGraphemeBytesMax = 5;

uint32_t ReadUnit(absl::string_view bytes, size_t offset) {
  uint32_t value = 0;
  for (size_t i = kUnitBytes; i > 0; --i) {
    value = value << 8 | static_cast<uint8_t>(bytes[offset + i - 1]);
  }
  return value;
}

// The fields of a unit of the double array.
bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t ValueOf(uint32_t unit) { return unit & 0x7fffffffu; }
uint32_t LabelOf(uint32_t unit) { return unit & 0x800000ffu; }
uint32_t OffsetOf(uint32_t unit) { return unit >> 10 << ((unit & 0x200u) >> 6); }

}  // namespace

absl::StatusOr<PrecompiledMap> PrecompiledMap::Create(absl::string_view bytes) {
  const uint64_t trie_bytes = bytes.size() < kUnitBytes ? 0 : ReadUnit(bytes, 0);
  const bool fits = bytes.size() >= kUnitBytes && trie_bytes % kUnitBytes == 0 &&
                    trie_bytes >= kUnitBytes && trie_bytes <= bytes.size() - kUnitBytes;
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the precompiled normalization map has %d bytes and a trie of %d; it is cut or no such map",
        bytes.size(), trie_bytes));
  }
  PrecompiledMap map;
  map.units_.reserve(trie_bytes / kUnitBytes);
  for (size_t i = 0; i < trie_bytes; i += kUnitBytes) {
    map.units_.push_back(ReadUnit(bytes, kUnitBytes + i));
  }
  map.replacements_ = std::string(bytes.substr(kUnitBytes + trie_bytes));
  return map;
}

absl::string_view PrecompiledMap::ReplacementAt(size_t offset) const {
  if (offset >= replacements_.size()) {
    return "";
  }
  const absl::string_view rest = absl::string_view(replacements_).substr(offset);
  return rest.substr(0, rest.find('\0'));
}

std::optional<PrecompiledMap::Entry> PrecompiledMap::Find(absl::string_view text,
                                                          bool wants_longest) const {
  std::optional<Entry> found;
  size_t node = OffsetOf(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (node >= units_.size() || LabelOf(units_[node]) != byte) {
      break;
    }
    const uint32_t unit = units_[node];
    node ^= OffsetOf(unit);
    if (HasLeaf(unit)) {
      if (node >= units_.size()) {
        break;
      }
      found = Entry{i + 1, ReplacementAt(ValueOf(units_[node]))};
      if (!wants_longest) {
        break;
      }
    }
  }
  return found;
}

std::optional<PrecompiledMap::Entry> PrecompiledMap::FindLongest(absl::string_view text) const {
  return Find(text, /*wants_longest=*/true);
}

std::optional<PrecompiledMap::Entry> PrecompiledMap::FindShortest(absl::string_view text) const {
  return Find(text, /*wants_longest=*/false);
}

std::string PrecompiledMap::ApplyByGraphemes(absl::string_view text) const {
  std::string result;
  while (!text.empty()) {
    utf8proc_int32_t state = 0;
    Utf8Unit last = FirstUtf8Unit(text);
    size_t bytes = last.bytes;
    while (bytes < text.size()) {
      const Utf8Unit next = FirstUtf8Unit(text.substr(bytes));
      if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.code_point),
                                           static_cast<utf8proc_int32_t>(next.code_point),
                                           &state)) {
        break;
      }
      bytes += next.bytes;
      last = next;
    }
    absl::string_view cluster = text.substr(0, bytes);
    text.remove_prefix(bytes);
    const std::optional<Entry> whole =
        bytes <= kWholeGraphemeBytesMax ? FindShortest(cluster) : std::nullopt;
    if (whole.has_value()) {
      absl::StrAppend(&result, whole->replacement);
      continue;
    }
    while (!cluster.empty()) {
      const absl::string_view character = cluster.substr(0, FirstUtf8Unit(cluster).bytes);
      const std::optional<Entry> entry = FindShortest(character);
      absl::StrAppend(&result, entry.has_value() ? entry->replacement : character);
      cluster.remove_prefix(character.size());
    }
  }
  return result;
}

}  // namespace trireme::text
