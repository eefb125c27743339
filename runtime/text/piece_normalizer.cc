#include "runtime/text/piece_normalizer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

constexpr absl::string_view kSpaceMark = "\xe2\x96\x81";

}  // namespace

absl::StatusOr<PieceNormalizer> PieceNormalizer::Create(const PieceFile& file) {
  PieceNormalizer normalizer;
  normalizer.adds_prefix_space_ = file.adds_prefix_space;
  normalizer.removes_extra_spaces_ = file.removes_extra_spaces;
  if (!file.precompiled_map.empty()) {
    ASSIGN_OR_RETURN(normalizer.map_, PrecompiledMap::Create(file.precompiled_map));
  }
  return normalizer;
}

PieceNormalizer::Chunk PieceNormalizer::NextChunk(absl::string_view rest) const {
  if (map_.has_value()) {
    const std::optional<PrecompiledMap::Entry> entry = map_->FindLongest(rest);
    if (entry.has_value()) {
      return {entry->replacement, entry->bytes};
    }
  }
  const size_t bytes = FirstUtf8Unit(rest).bytes;
  return {rest.substr(0, bytes), bytes};
}

std::string PieceNormalizer::Normalize(absl::string_view text,
                                       const std::vector<SpecialTokenMatch>& kept) const {
  std::string result;
  bool was_space = removes_extra_spaces_;  // leading spaces go away like further ones
  bool has_text = false;
  size_t next_kept = 0;
  for (size_t i = 0; i < text.size();) {
    Chunk chunk;
    while (next_kept < kept.size() && kept[next_kept].end <= i) {
      ++next_kept;
    }
    if (next_kept < kept.size() && kept[next_kept].begin == i) {
      chunk.bytes = kept[next_kept].end - i;
      chunk.text = text.substr(i, chunk.bytes);
    } else {
      chunk = NextChunk(text.substr(i));
    }
    i += chunk.bytes;
    while (was_space && absl::ConsumePrefix(&chunk.text, " ")) {
    }
    if (chunk.text.empty()) {
      continue;
    }
    if (!has_text && adds_prefix_space_) {
      absl::StrAppend(&result, kSpaceMark);
    }
    has_text = true;
    for (const char byte : chunk.text) {
      if (byte == ' ') {
        absl::StrAppend(&result, kSpaceMark);
      } else {
        result += byte;
      }
    }
    was_space = removes_extra_spaces_ && absl::EndsWith(chunk.text, " ");
  }
  absl::string_view trimmed = result;
  while (removes_extra_spaces_ && absl::ConsumeSuffix(&trimmed, kSpaceMark)) {
  }
  return std::string(trimmed);
}

}  // namespace trireme::text
