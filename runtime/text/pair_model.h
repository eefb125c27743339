// The model "BPE" of a tokenizer.json: characters (or bytes written as characters) become tokens,
// and neighbouring tokens merge by the rank of the file's merges.
#ifndef TRIREME_RUNTIME_TEXT_PAIR_MODEL_H_
#define TRIREME_RUNTIME_TEXT_PAIR_MODEL_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/text/byte_pair_encoding.h"
#include "runtime/text/character_ids.h"
#include "runtime/text/json_fields.h"
#include "runtime/text/piece_model.h"

namespace trireme::text {

class PairModel : public PieceModel {
 public:
  // `tokens`: the model's own vocabulary, [id]. `gives_bytes`: pieces hold bytes, of which each
  // stands for a character. Errors (InvalidArgument): merges that are missing, malformed, or name
  // tokens that are not there; an unknown token that is not there; dropout; a prefix or suffix of
  // subwords. Of equal merges the last one counts, as in the reference.
  static absl::StatusOr<std::unique_ptr<PairModel>> Create(const JsonFields& model,
                                                           const std::vector<std::string>& tokens,
                                                           bool gives_bytes);

  // What no token expresses becomes its UTF-8 bytes if the file asks for it and they are there,
  // else the unknown token, else nothing. Never fails.
  absl::Status Encode(const PieceList& list, std::vector<int32_t>* ids) const override;

 private:
  // Initial symbols of one piece, with the unknown token that may grow.
  struct Symbols {
    std::vector<int32_t> ids;
    bool has_unknown = false;  // waits to be appended
  };

  PairModel(bool gives_bytes, PairTable pairs)
      : gives_bytes_(gives_bytes), pairs_(std::move(pairs)) {}
  void ReadTokens(const std::vector<std::string>& tokens);
  absl::Status ReadOptions(const JsonFields& model,
                           const absl::flat_hash_map<absl::string_view, int32_t>& ids);
  void AddCharacter(char32_t code_point, Symbols* symbols) const;
  void FlushUnknown(Symbols* symbols) const;

  const bool gives_bytes_;
  const PairTable pairs_;
  bool ignores_merges_ = false;
  bool falls_back_to_bytes_ = false;
  bool fuses_unknown_ = false;
  std::optional<int32_t> unknown_id_;
  CharacterIds character_ids_;                          // tokens of one character
  std::array<int32_t, 256> byte_ids_;                   // "<0x41>"; -1: none
  absl::flat_hash_map<std::string, int32_t> word_ids_;  // whole pieces, if merges are ignored
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_PAIR_MODEL_H_
