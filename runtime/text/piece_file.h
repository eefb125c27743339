// SentencePiece's tokenizer.model: a protocol buffer (message ModelProto of
// sentencepiece_model.proto) with the pieces, their scores and types, and how a text is normalized.
// Read by hand, since it is five fields deep and comes from strangers.
#ifndef TRIREME_RUNTIME_TEXT_PIECE_FILE_H_
#define TRIREME_RUNTIME_TEXT_PIECE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace trireme::text {

struct PieceFile {
  enum class Kind : uint8_t { kUnigram = 1, kPairs = 2 };

  Kind kind = Kind::kUnigram;
  std::vector<std::string> pieces;   // [id], valid UTF-8
  std::vector<float> scores;         // [id], finite
  std::vector<int32_t> token_types;  // [id], the numbers of TokenType
  bool falls_back_to_bytes = false;
  int32_t unknown_id = 0;
  int32_t bos_id = 1;  // negative: none
  int32_t eos_id = 2;
  std::string unknown_text = " \xe2\x81\x87 ";  // what an unknown piece decodes to
  bool adds_prefix_space = true;
  bool removes_extra_spaces = true;
  std::string precompiled_map;  // PrecompiledMap's bytes; empty: none
};

// Errors (InvalidArgument, naming field and byte): bytes that are no such message or are cut; no
// pieces; two equal pieces; a score that is no number; a kind, a type or an option that is not
// supported (words, characters, white space as a suffix, spaces that are not escaped).
absl::StatusOr<PieceFile> ReadPieceFile(absl::string_view bytes);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_PIECE_FILE_H_
