// The words that a call has encoded so far, with their ids, so that an encoder copies a word that
// comes again. A word is what its encoder makes one: bytes whose ids depend on nothing around them.
#ifndef TRIREME_RUNTIME_TEXT_ENCODED_WORDS_H_
#define TRIREME_RUNTIME_TEXT_ENCODED_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace trireme::text {

// For one call on one thread, with one vector of ids to which it only appends; words are kept as
// views of its text.
class EncodedWords {
 public:
  // Appends the ids of `word` and says true; false when it is not kept.
  bool Append(absl::string_view word, std::vector<int32_t>* ids) const {
    const auto entry = word.size() <= kWordBytesMax ? places_.find(word) : places_.end();
    if (entry == places_.end()) {
      return false;
    }
    for (size_t i = 0; i < entry->second.count; ++i) {
      ids->push_back((*ids)[entry->second.first + i]);
    }
    return true;
  }

  // Keeps a word that has just become the ids from place `first` on, unless it is long or there are
  // many already.
  void Keep(absl::string_view word, size_t first, const std::vector<int32_t>& ids) {
    if (word.size() <= kWordBytesMax && places_.size() < kWordsMax) {
      places_.emplace(word, Place{first, ids.size() - first});
    }
  }

 private:
  // Enough for a language; about 2 MiB.
  static constexpr size_t kWordsMax = 32768;
  static constexpr size_t kWordBytesMax = 64;

  struct Place {
    size_t first;
    size_t count;
  };

  absl::flat_hash_map<absl::string_view, Place> places_;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_ENCODED_WORDS_H_
