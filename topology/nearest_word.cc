#include "topology/nearest_word.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace trireme::topology {
namespace {

constexpr size_t kEditsMax = 3;
constexpr size_t kWordLengthMax = 64;  // a longer one is nobody's slip of the finger

// Levenshtein distance.
size_t Edits(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string NearestWord(absl::string_view word, const std::vector<std::string>& known) {
  if (word.size() > kWordLengthMax) {
    return "";
  }
  std::string best;
  size_t best_edits = kEditsMax + 1;
  for (const std::string& candidate : known) {
    const size_t edits = Edits(word, candidate);
    if (edits < best_edits && 2 * edits <= std::max(word.size(), candidate.size())) {
      best = candidate;
      best_edits = edits;
    }
  }
  return best;
}

}  // namespace trireme::topology
