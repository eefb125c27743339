// The model "Unigram" of a tokenizer.json: each piece is cut into the tokens whose scores have the
// highest sum.
#ifndef TRIREME_RUNTIME_TEXT_UNIGRAM_MODEL_H_
#define TRIREME_RUNTIME_TEXT_UNIGRAM_MODEL_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/text/json_fields.h"
#include "runtime/text/piece_model.h"
#include "runtime/text/unigram_trie.h"

namespace trireme::text {

class UnigramModel : public PieceModel {
 public:
  // `tokens`: the model's own vocabulary, [id]. `gives_bytes`: pieces hold bytes, of which each
  // stands for a character. Errors (InvalidArgument): an unknown id past the vocabulary, a score
  // that is no finite number, a token of over 512 bytes.
  static absl::StatusOr<std::unique_ptr<UnigramModel>> Create(
      const JsonFields& model, const std::vector<std::string>& tokens, bool gives_bytes);

  // A run of characters in no token becomes one unknown token, or its bytes if the file asks for it
  // and they are there. Errors (InvalidArgument): neither exists.
  absl::Status Encode(const PieceList& list, std::vector<int32_t>* ids) const override;

 private:
  UnigramModel() = default;
  absl::Status AppendUnknown(absl::string_view text, std::vector<int32_t>* ids) const;
  absl::Status EncodePiece(absl::string_view text, std::vector<int32_t>* ids) const;

  bool gives_bytes_ = false;
  bool falls_back_to_bytes_ = false;
  std::optional<int32_t> unknown_id_;
  double unknown_score_ = 0;
  UnigramTrie<double> trie_;
  std::array<int32_t, 256> byte_ids_;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_UNIGRAM_MODEL_H_
