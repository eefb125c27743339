#include "runtime/text/normal_form_table.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "runtime/text/character_set.h"

namespace trireme::text {
namespace {

// Characters with a compatibility decomposition that are newer than the library's tables.
constexpr CodePointRange kNewCompatibility[] = {
    {0x32ff, 0x32ff},   {0xa7f2, 0xa7f4},   {0xab69, 0xab69},
    {0x10781, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba},
    {0x1e030, 0x1e06d}, {0x1f16c, 0x1f16c}, {0x1fbf0, 0x1fbf9}};
// The same for a canonical one.
constexpr CodePointRange kNewCanonical[] = {{0x11938, 0x11938}};

template <size_t kCount>
bool IsIn(char32_t code_point, const CodePointRange (&ranges)[kCount]) {
  return std::any_of(std::begin(ranges), std::end(ranges), [code_point](CodePointRange range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

// That of the installed library.
std::vector<int32_t> Decomposition(char32_t code_point, bool is_compatibility) {
  std::vector<int32_t> characters(32);  // the longest has 18
  int last_class = 0;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (is_compatibility ? UTF8PROC_COMPAT : 0));
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(code_point), characters.data(),
      static_cast<utf8proc_ssize_t>(characters.size()), options, &last_class);
  if (count <= 0 || count > static_cast<utf8proc_ssize_t>(characters.size())) {
    return {static_cast<int32_t>(code_point)};
  }
  characters.resize(static_cast<size_t>(count));
  return characters;
}

// Whether the decomposition of `code_point` composes to itself again.
bool ComposesAgain(char32_t code_point, std::vector<int32_t> decomposition) {
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  const utf8proc_ssize_t count = utf8proc_normalize_utf32(
      decomposition.data(), static_cast<utf8proc_ssize_t>(decomposition.size()), options);
  return count == 1 && decomposition[0] == static_cast<int32_t>(code_point);
}

bool MayDecompose(char32_t code_point, const utf8proc_property_t& property) {
  constexpr char32_t kHangulFirst = 0xac00;  // by rule, not by table
  constexpr char32_t kHangulLast = 0xd7a3;
  return property.decomp_seqindex != UINT16_MAX ||
         (code_point >= kHangulFirst && code_point <= kHangulLast);
}

NormalFormBits ChangesOf(char32_t code_point) {
  NormalFormBits bits = 0;
  for (const bool is_compatibility : {false, true}) {
    std::vector<int32_t> parts;
    AppendDecomposition(code_point, is_compatibility, &parts);
    if (parts.size() != 1 || parts[0] != static_cast<int32_t>(code_point)) {
      bits |= is_compatibility ? kChangesInNfkd : kChangesInNfd;
    }
    if (!ComposesAgain(code_point, std::move(parts))) {
      bits |= is_compatibility ? kChangesInNfkc : kChangesInNfc;
    }
  }
  return bits;
}

}  // namespace

void AppendDecomposition(char32_t code_point, bool is_compatibility, std::vector<int32_t>* out) {
  const bool stays = code_point < 0x80 || IsIn(code_point, kNewCanonical) ||
                     (is_compatibility && IsIn(code_point, kNewCompatibility));
  if (stays) {
    out->push_back(static_cast<int32_t>(code_point));
    return;
  }
  const std::vector<int32_t> characters = Decomposition(code_point, is_compatibility);
  out->insert(out->end(), characters.begin(), characters.end());
}

const NormalFormTable& NormalFormTable::Get() {
  static const auto* const table = new NormalFormTable();
  return *table;
}

NormalFormTable::NormalFormTable() {
  std::vector<NormalFormBits> all(kLastCodePoint + 1);
  for (char32_t code_point = 0x80; code_point <= kLastCodePoint; ++code_point) {
    const utf8proc_property_t& property =
        *utf8proc_get_property(static_cast<utf8proc_int32_t>(code_point));
    all[code_point] |= static_cast<NormalFormBits>(property.combining_class);
    if (!MayDecompose(code_point, property)) {
      continue;
    }
    all[code_point] |= ChangesOf(code_point);
    // Whatever ends a canonical decomposition may compose with what is before it.
    const std::vector<int32_t> parts = Decomposition(code_point, /*is_compatibility=*/false);
    if (parts.size() > 1) {
      all[static_cast<size_t>(parts.back())] |= kJoinsPrevious;
    }
  }
  std::map<std::vector<NormalFormBits>, uint16_t> known;
  for (size_t i = 0; i < page_index_.size(); ++i) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(i * kPageCharacters);
    const std::vector<NormalFormBits> page(begin,
                                           begin + static_cast<std::ptrdiff_t>(kPageCharacters));
    const auto [entry, is_new] = known.try_emplace(page, static_cast<uint16_t>(known.size()));
    if (is_new) {
      pages_.insert(pages_.end(), page.begin(), page.end());
    }
    page_index_[i] = entry->second;
  }
}

}  // namespace trireme::text
