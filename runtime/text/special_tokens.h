// Finds the tokens that match a text literally, before any pre-tokenizer: control tokens such as
// <|im_start|> and user-defined tokens. Which of them may match where is the caller's rule.
//
// Overlaps: longer tokens win over shorter ones wherever they stand, and among tokens of one length
// the leftmost wins. That is what a pass over the text per token, longest token first, gives; it is
// done here in one pass over the text (Aho and Corasick's automaton) and one over the matches.
#ifndef TRIREME_RUNTIME_TEXT_SPECIAL_TOKENS_H_
#define TRIREME_RUNTIME_TEXT_SPECIAL_TOKENS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace trireme::text {

struct SpecialToken {
  std::string text;  // not empty; no two tokens of equal text
  int32_t id;
};

// Bytes [begin, end) of the text are the token `id`.
struct SpecialTokenMatch {
  size_t begin;
  size_t end;
  int32_t id;
};

// Immutable after construction; any number of threads may call Find.
class SpecialTokenFinder {
 public:
  explicit SpecialTokenFinder(std::vector<SpecialToken> tokens);

  // The matches in ascending order, without overlaps. A match for which `allowed` is false counts
  // as not there. `text` is shorter than 2^32 bytes. Time is linear in the text but for sorting the
  // matches.
  std::vector<SpecialTokenMatch> Find(
      absl::string_view text, absl::FunctionRef<bool(const SpecialTokenMatch&)> allowed) const;

 private:
  struct Node {
    int32_t fail = 0;      // node of the longest proper suffix that is in the automaton
    int32_t longest = -1;  // index of the longest token that ends here, or -1
  };
  static uint64_t Edge(int32_t node, uint8_t byte) {
    return static_cast<uint64_t>(node) << 8 | byte;
  }
  int32_t Step(int32_t node, uint8_t byte) const;
  void Insert(size_t token_index);
  void Link();

  std::vector<SpecialToken> tokens_;
  std::vector<int32_t>
      next_shorter_;         // per token: the longest token that is a proper suffix of it, or -1
  std::vector<Node> nodes_;  // node 0 is the root
  absl::flat_hash_map<uint64_t, int32_t> edges_;
  std::array<int32_t, 256> root_edges_ = {};  // 0: none
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_SPECIAL_TOKENS_H_
