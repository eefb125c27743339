#include "runtime/text/unigram_trie.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/text/utf8.h"

namespace trireme::text {

template <typename Score>
void UnigramTrie<Score>::Add(absl::string_view token, int32_t id, Score score) {
  CHECK(!token.empty());
  CHECK_LE(token.size(), kTokenBytesMax);
  uint32_t node = 0;
  for (const char byte : token) {
    const auto [edge, is_new] =
        edges_.try_emplace(Edge(node, byte), static_cast<uint32_t>(nodes_.size()));
    if (is_new) {
      nodes_.emplace_back();
    }
    node = edge->second;
  }
  if (nodes_[node].id < 0) {
    nodes_[node] = {id, score};
  }
}

template <typename Score>
std::vector<typename UnigramTrie<Score>::Part> UnigramTrie<Score>::Cut(absl::string_view text,
                                                                       Score unknown_score) const {
  struct Best {
    Score score = 0;
    uint32_t bytes = 0;  // of the last part; 0: not reached yet
    int32_t id = -1;
  };
  std::vector<Best> best(text.size() + 1);  // by where a path ends
  const auto offer = [&best](size_t begin, size_t bytes, int32_t id, Score score) {
    Best& end = best[begin + bytes];
    // The published engine compares before it rounds.
    const double sum = static_cast<double>(best[begin].score) + static_cast<double>(score);
    if (end.bytes == 0 || sum > static_cast<double>(end.score)) {
      end = {static_cast<Score>(sum), static_cast<uint32_t>(bytes), id};
    }
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t character_bytes = FirstUtf8Unit(text.substr(begin)).bytes;
    bool has_character = false;
    uint32_t node = 0;
    for (size_t i = begin; i < text.size(); ++i) {
      const auto edge = edges_.find(Edge(node, text[i]));
      if (edge == edges_.end()) {
        break;
      }
      node = edge->second;
      const size_t bytes = i + 1 - begin;
      if (nodes_[node].id >= 0) {
        offer(begin, bytes, nodes_[node].id, nodes_[node].score);
        has_character = has_character || bytes == character_bytes;
      }
    }
    if (!has_character) {
      offer(begin, character_bytes, -1, unknown_score);
    }
    begin += character_bytes;
  }
  std::vector<Part> parts;
  for (size_t end = text.size(); end > 0;) {
    const size_t begin = end - best[end].bytes;
    parts.push_back({begin, end, best[end].id});
    end = begin;
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

template class UnigramTrie<float>;
template class UnigramTrie<double>;

}  // namespace trireme::text
