// The best way to cut a text into tokens with scores: the path of the highest sum (Viterbi), as
// Unigram vocabularies have it (Kudo, "Subword Regularization", 2018).
#ifndef TRIREME_RUNTIME_TEXT_UNIGRAM_TRIE_H_
#define TRIREME_RUNTIME_TEXT_UNIGRAM_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace trireme::text {

// Immutable once all tokens are added; any number of threads may then call Cut. `Score` is the type
// that sums are kept in: that of the engine whose ties and roundings count.
template <typename Score>
class UnigramTrie {
 public:
  // A token in the text, or, with an id of -1, a character that begins no token.
  struct Part {
    size_t begin;
    size_t end;
    int32_t id;
  };

  // What a text may not have more of in one token: each position is looked at once per byte of the
  // longest.
  static constexpr size_t kTokenBytesMax = 512;

  // `token` is not empty and at most kTokenBytesMax bytes; of equal ones the first counts.
  void Add(absl::string_view token, int32_t id, Score score);

  // A character that is no token by itself gets `unknown_score`. `text` is valid UTF-8.
  std::vector<Part> Cut(absl::string_view text, Score unknown_score) const;

 private:
  struct Entry {
    int32_t id = -1;
    Score score = 0;
  };
  static uint64_t Edge(uint32_t node, char byte) {
    return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte);
  }

  std::vector<Entry> nodes_ = std::vector<Entry>(1);  // 0 is the root
  absl::flat_hash_map<uint64_t, uint32_t> edges_;
};

extern template class UnigramTrie<float>;
extern template class UnigramTrie<double>;

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_UNIGRAM_TRIE_H_
