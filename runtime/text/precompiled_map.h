// SentencePiece's precompiled normalization map: a double-array trie (as the darts-clone library
// writes it) from spellings to replacements. It comes inside tokenizer.model files, and in base64
// in the "Precompiled" normalizer of a tokenizer.json.
//
// Layout: u32 bytes of the trie, little-endian; the trie's units, u32 each; the replacements, each
// ended by a zero byte, which the trie's values point into.
#ifndef TRIREME_RUNTIME_TEXT_PRECOMPILED_MAP_H_
#define TRIREME_RUNTIME_TEXT_PRECOMPILED_MAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace trireme::text {

// Immutable after Create; any number of threads may call it. A hostile map gives odd replacements,
// but is never read past its end.
class PrecompiledMap {
 public:
  struct Entry {
    size_t bytes;  // of the spelling, at least 1
    absl::string_view replacement;
  };

  // Errors (InvalidArgument): a size that does not fit the bytes.
  static absl::StatusOr<PrecompiledMap> Create(absl::string_view bytes);

  // The longest, or the shortest, spelling that `text` begins with.
  std::optional<Entry> FindLongest(absl::string_view text) const;
  std::optional<Entry> FindShortest(absl::string_view text) const;

  // `text` with replacements as a tokenizer.json has them made: a grapheme cluster of under 6 bytes
  // is replaced as a whole when it begins with a spelling; otherwise each of its characters may be.
  std::string ApplyByGraphemes(absl::string_view text) const;

 private:
  std::optional<Entry> Find(absl::string_view text, bool wants_longest) const;
  absl::string_view ReplacementAt(size_t offset) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_PRECOMPILED_MAP_H_
