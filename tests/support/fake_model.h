// A "model" for tests of scheduling: the next token is a pure function of all tokens before it, so
// that any slip of order, cache or batch changes the output.
#ifndef TRIREME_TESTS_SUPPORT_FAKE_MODEL_H_
#define TRIREME_TESTS_SUPPORT_FAKE_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace trireme::testing {

// FNV-1a over the history, one token at a time.
class HistoryHash {
 public:
  void Add(int32_t token_id) {
    for (int byte = 0; byte < 4; ++byte) {
      hash_ ^= static_cast<uint64_t>(token_id >> (8 * byte)) & 0xFF;
      hash_ *= 0x100000001B3u;
    }
  }
  int32_t NextToken(int32_t vocabulary) const {
    return static_cast<int32_t>((hash_ ^ hash_ >> 32) % static_cast<uint64_t>(vocabulary));
  }

 private:
  uint64_t hash_ = 0xCBF29CE484222325u;
};

inline int32_t FakeNextToken(absl::Span<const int32_t> history, int32_t vocabulary) {
  HistoryHash hash;
  for (const int32_t token_id : history) {
    hash.Add(token_id);
  }
  return hash.NextToken(vocabulary);
}

// The first `count` tokens after `prompt`.
inline std::vector<int32_t> FakeGenerate(std::vector<int32_t> prompt, int64_t count,
                                         int32_t vocabulary) {
  std::vector<int32_t> generated;
  while (static_cast<int64_t>(generated.size()) < count) {
    const int32_t token_id = FakeNextToken(prompt, vocabulary);
    generated.push_back(token_id);
    prompt.push_back(token_id);
  }
  return generated;
}

}  // namespace trireme::testing

#endif  // TRIREME_TESTS_SUPPORT_FAKE_MODEL_H_
