// Byte-level BPE (tokenizer.ggml.model "gpt2"): a pre-tokenizer cuts words, and within a word bytes
// merge by the rank of the file's merges.
#ifndef TRIREME_RUNTIME_TEXT_BYTE_LEVEL_ENCODER_H_
#define TRIREME_RUNTIME_TEXT_BYTE_LEVEL_ENCODER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/text/byte_pair_encoding.h"
#include "runtime/text/pre_tokenizer_families.h"
#include "runtime/text/pre_tokenizer_steps.h"
#include "runtime/text/text_encoder.h"
#include "runtime/text/vocabulary.h"

namespace trireme::text {

class ByteLevelEncoder : public TextEncoder {
 public:
  // `vocabulary` must outlive the encoder. Errors (InvalidArgument): no merges; a merge without two
  // parts. Merges of unknown tokens are left out and counted in one line of the log, since pruned
  // vocabularies are published with them; so are merges that would make a control token.
  static absl::StatusOr<std::unique_ptr<ByteLevelEncoder>> Create(const Vocabulary& vocabulary,
                                                                  const PreTokenizerFamily& family);

  // A byte that has no token is dropped, as the reference does: the only other choice would be the
  // unknown token, which in published vocabularies is <|endoftext|>.
  absl::Status Encode(absl::string_view text, EncodedWords* words,
                      std::vector<int32_t>* ids) const override;
  std::string BytesOf(int32_t id) const override;

 private:
  ByteLevelEncoder(const Vocabulary& vocabulary, PreTokenizerSteps steps, PairTable pairs,
                   bool ignores_merges);
  void EncodeWord(absl::string_view word, SymbolMerger* merger, std::vector<int32_t>* symbols,
                  std::vector<int32_t>* ids) const;

  const Vocabulary& vocabulary_;
  const PreTokenizerSteps steps_;
  const PairTable pairs_;
  std::array<int32_t, 256> byte_ids_;                   // -1: none
  absl::flat_hash_map<std::string, int32_t> word_ids_;  // by bytes; empty unless merges are ignored
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_BYTE_LEVEL_ENCODER_H_
