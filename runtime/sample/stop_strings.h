// Finds stop strings in a text that arrives in pieces, and says what of the text may be shown: what
// could still become a stop string is held back, and from the first byte of a match on nothing is
// shown. Matches may cross pieces. In the text so far the leftmost match counts, the longest of
// those that start there.
#ifndef TRIREME_RUNTIME_SAMPLE_STOP_STRINGS_H_
#define TRIREME_RUNTIME_SAMPLE_STOP_STRINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace trireme::sample {

class StopStrings {
 public:
  // No string is empty. With none at all, text passes unchanged.
  explicit StopStrings(std::vector<std::string> strings);

  // Takes the next piece of text and appends to *shown what may be shown now. Returns the index of
  // the string that matched, or -1. After a match neither Append nor Flush is called again. Costs a
  // few operations for each byte and string (Knuth, Morris, Pratt 1977) and, once *shown has its
  // capacity, allocates nothing.
  int Append(absl::string_view text, std::string* shown);

  // The text ends here: appends to *shown what was held back.
  void Flush(std::string* shown);

  bool empty() const { return patterns_.empty(); }
  const std::string& string(int index) const {
    return patterns_[static_cast<size_t>(index)].string;
  }

 private:
  struct Pattern {
    std::string string;
    std::vector<uint32_t> borders;  // [string]: longest proper border of each prefix
    uint32_t matched = 0;           // bytes of the string that the text so far ends with
  };
  // Advances by one byte; true when the whole string has just been read.
  static bool Advance(Pattern& pattern, char byte);

  std::vector<Pattern> patterns_;
  std::string held_;  // the end of the text so far that is not shown yet
};

}  // namespace trireme::sample

#endif  // TRIREME_RUNTIME_SAMPLE_STOP_STRINGS_H_
