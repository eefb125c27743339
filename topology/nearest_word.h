// "Did you mean": the known word that a misspelt one is nearest to.
#ifndef TRIREME_TOPOLOGY_NEAREST_WORD_H_
#define TRIREME_TOPOLOGY_NEAREST_WORD_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace trireme::topology {

// The word of `known` with the fewest edits (letters added, dropped or replaced) from `word`; empty
// when even that one is another word: more than three edits, or more than about half of its
// letters.
std::string NearestWord(absl::string_view word, const std::vector<std::string>& known);

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_NEAREST_WORD_H_
