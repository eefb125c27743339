#include "runtime/sample/stop_strings.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"

namespace trireme::sample {
namespace {

// Room for the text of one token beside the longest possible match.
constexpr size_t kPieceBytes = 256;

std::vector<uint32_t> Borders(absl::string_view string) {
  std::vector<uint32_t> borders(string.size(), 0);
  uint32_t border = 0;
  for (size_t end = 1; end < string.size(); ++end) {
    while (border > 0 && string[end] != string[border]) {
      border = borders[border - 1];
    }
    if (string[end] == string[border]) {
      ++border;
    }
    borders[end] = border;
  }
  return borders;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> strings) {
  size_t bytes_max = 0;
  for (std::string& string : strings) {
    CHECK(!string.empty());
    bytes_max = std::max(bytes_max, string.size());
    std::vector<uint32_t> borders = Borders(string);
    patterns_.push_back({std::move(string), std::move(borders), 0});
  }
  if (!patterns_.empty()) {
    held_.reserve(bytes_max + kPieceBytes);
  }
}

bool StopStrings::Advance(Pattern& pattern, char byte) {
  if (pattern.matched == pattern.string.size()) {
    pattern.matched = pattern.borders.back();
  }
  while (pattern.matched > 0 && pattern.string[pattern.matched] != byte) {
    pattern.matched = pattern.borders[pattern.matched - 1];
  }
  if (pattern.string[pattern.matched] == byte) {
    ++pattern.matched;
  }
  return pattern.matched == pattern.string.size();
}

int StopStrings::Append(absl::string_view text, std::string* shown) {
  if (patterns_.empty()) {
    shown->append(text.data(), text.size());
    return -1;
  }
  size_t end = held_.size();  // of the text read so far, in held_
  held_.append(text.data(), text.size());
  int match_index = -1;
  size_t match_start = 0;
  for (const char byte : text) {
    ++end;
    for (size_t index = 0; index < patterns_.size(); ++index) {
      Pattern& pattern = patterns_[index];
      if (!Advance(pattern, byte)) {
        continue;
      }
      const size_t start = end - pattern.string.size();
      const bool longer = match_index >= 0 && start == match_start &&
                          pattern.string.size() > string(match_index).size();
      if (match_index < 0 || start < match_start || longer) {
        match_index = static_cast<int>(index);
        match_start = start;
      }
    }
  }
  size_t shown_bytes = match_start;
  if (match_index < 0) {
    uint32_t possible = 0;
    for (const Pattern& pattern : patterns_) {
      possible = std::max(possible, pattern.matched);
    }
    shown_bytes = held_.size() - possible;
  }
  shown->append(held_, 0, shown_bytes);
  held_.erase(0, shown_bytes);
  return match_index;
}

void StopStrings::Flush(std::string* shown) {
  shown->append(held_);
  held_.clear();
}

}  // namespace trireme::sample
