// A number for each character that has one: the tokens of one character, which encoders ask for
// with every character of a text. Those of most alphabets are in a plain array.
#ifndef TRIREME_RUNTIME_TEXT_CHARACTER_IDS_H_
#define TRIREME_RUNTIME_TEXT_CHARACTER_IDS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace trireme::text {

// Any number of threads may call Find while none adds.
class CharacterIds {
 public:
  // The number of `code_point`; -1 when it has none.
  int32_t Find(char32_t code_point) const {
    if (code_point < kLowCharacters) {
      return low_[code_point];
    }
    const auto entry = others_.find(code_point);
    return entry == others_.end() ? -1 : entry->second;
  }

  // `id` is at least 0 and replaces what the character had.
  void Set(char32_t code_point, int32_t id) {
    (code_point < kLowCharacters ? low_[code_point] : others_[code_point]) = id;
  }

 private:
  static constexpr char32_t kLowCharacters = 0x3000;  // 48 KiB, up to the mark for spaces U+2581

  std::vector<int32_t> low_ = std::vector<int32_t>(kLowCharacters, -1);
  absl::flat_hash_map<char32_t, int32_t> others_;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_CHARACTER_IDS_H_
