// SentencePiece's normalization of a text: replacements of a precompiled map, spaces that collapse,
// a space before the text, and U+2581 in the place of spaces.
#ifndef TRIREME_RUNTIME_TEXT_PIECE_NORMALIZER_H_
#define TRIREME_RUNTIME_TEXT_PIECE_NORMALIZER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/text/added_tokens.h"
#include "runtime/text/piece_file.h"
#include "runtime/text/precompiled_map.h"

namespace trireme::text {

// Immutable after Create; any number of threads may call it.
class PieceNormalizer {
 public:
  // Errors: those of PrecompiledMap::Create.
  static absl::StatusOr<PieceNormalizer> Create(const PieceFile& file);

  // `text` is valid UTF-8. `kept` are stretches of it, ascending, that are not replaced (their
  // spaces count all the same).
  std::string Normalize(absl::string_view text,
                        const std::vector<SpecialTokenMatch>& kept = {}) const;

 private:
  // What the start of a text becomes, and how much of it that takes.
  struct Chunk {
    absl::string_view text;
    size_t bytes;
  };
  Chunk NextChunk(absl::string_view rest) const;

  bool adds_prefix_space_ = false;
  bool removes_extra_spaces_ = false;
  std::optional<PrecompiledMap> map_;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_PIECE_NORMALIZER_H_
