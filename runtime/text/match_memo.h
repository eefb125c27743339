// What a call of an expression remembers, so that it does not run again for every digit, line feed
// or short word of a kind. For character_pattern. Both memos are for one thread and never forget:
// what comes when its place is taken is not kept.
#ifndef TRIREME_RUNTIME_TEXT_MATCH_MEMO_H_
#define TRIREME_RUNTIME_TEXT_MATCH_MEMO_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"
#include "absl/strings/string_view.h"

namespace trireme::text {

// The next `count` bytes from `position` on, at most 7, as a number; `text` has them.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline uint64_t NextBytes(absl::string_view text, size_t position,
                                                       size_t count) {
  const auto byte = [text, position](size_t i) {
    return uint64_t{static_cast<uint8_t>(text[position + i])} << 8 * i;
  };
  if (position + 8 <= text.size()) {  // compiles to one load
    const uint64_t eight =
        byte(0) | byte(1) | byte(2) | byte(3) | byte(4) | byte(5) | byte(6) | byte(7);
    return eight & ((uint64_t{1} << 8 * count) - 1);
  }
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    bytes |= byte(i);
  }
  return bytes;
}

inline size_t MemoPlace(uint64_t key, int places_log2) {
  return static_cast<size_t>(key * 0x9e3779b97f4a7c15u >> (64 - places_log2));
}

// What matches at the places of a text where a few characters decide it.
class MatchMemo {
 public:
  // What is looked at: enough for three digits or a word of three letters after a space, and for
  // the character behind it.
  static constexpr size_t kWindow = 5;

  enum class State : uint8_t {
    kNew,      // seen the first time
    kAgain,    // seen before: worth to find out
    kKnown,    // `begin` and `end` are those of the match, from the place on
    kUnknown,  // nothing is kept
  };
  struct Entry {
    uint64_t key = 0;  // 0: free
    State state = State::kNew;
    uint8_t begin = 0;
    uint8_t end = 0;
  };

  // The entry of the next kWindow classes from `position` on. Where fewer follow, or none behind
  // them, that is told apart, as the beginning is. `position` is before the end.
  Entry* Find(absl::string_view classes, size_t position) {
    const size_t rest = std::min(classes.size() - position, kWindow + 1);
    const uint64_t key = NextBytes(classes, position, std::min(rest, kWindow)) |
                         uint64_t{rest << 1 | (position == 0 ? 1 : 0)} << 56;
    Entry* const entry = &entries_[MemoPlace(key, kEntriesLog2)];
    if (entry->key == key) {
      entry->state = entry->state == State::kNew ? State::kAgain : entry->state;
      return entry;
    }
    if (entry->key != 0) {
      return &other_;
    }
    entry->key = key;
    return entry;
  }

 private:
  static constexpr int kEntriesLog2 = 9;

  std::array<Entry, size_t{1} << kEntriesLog2> entries_;
  Entry other_ = {.state = State::kUnknown};  // of all whose place is taken
};

// Short pieces that an expression leaves whole: one match, or none.
class WholePieceMemo {
 public:
  static constexpr size_t kBytesMax = 7;

  enum class Outcome : uint8_t { kUnknown, kMatch, kGap };
  struct Entry {
    uint64_t key = 0;  // 0: free
    Outcome outcome = Outcome::kUnknown;
  };

  // The entry of the `count` bytes of `text` from `begin` on, at least one and at most kBytesMax;
  // null when its place is taken.
  Entry* Find(absl::string_view text, size_t begin, size_t count) {
    const uint64_t key = NextBytes(text, begin, count) | uint64_t{count} << 56;
    Entry* const entry = &entries_[MemoPlace(key, kEntriesLog2)];
    if (entry->key != key && entry->key != 0) {
      return nullptr;
    }
    entry->key = key;
    return entry;
  }

 private:
  static constexpr int kEntriesLog2 = 8;

  std::array<Entry, size_t{1} << kEntriesLog2> entries_;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_MATCH_MEMO_H_
