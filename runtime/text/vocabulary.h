// The tokens of a model: what a file says about them (VocabularyData, filled by whoever read the
// file) and the checked form that tokenizers are built on (Vocabulary). Text does not depend on any
// file format; the errors name GGUF's keys because that is where the data comes from.
#ifndef TRIREME_RUNTIME_TEXT_VOCABULARY_H_
#define TRIREME_RUNTIME_TEXT_VOCABULARY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace trireme::text {

// The numbers are those of tokenizer.ggml.token_type.
enum class TokenType : uint8_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // matches in text only where the text is trusted; hidden on request
  kUserDefined = 4,  // matches in any text
  kUnused = 5,
  kByte = 6,  // "<0x41>"
};

// As read from the file, nothing checked. Optional: absent when the key is missing.
struct VocabularyData {
  std::string model_name;            // general.name; Phi-3's control tokens are told by it
  std::string model;                 // tokenizer.ggml.model: "gpt2", "llama", ...
  std::string pre_tokenizer;         // tokenizer.ggml.pre; empty when missing
  std::vector<std::string> tokens;   // index = token id
  std::vector<int32_t> token_types;  // [tokens], or empty when missing: all normal
  std::vector<float> scores;         // [tokens], or empty when missing
  std::optional<std::vector<std::string>> merges;  // "left right", index = rank
  // Rank files have no merges: two tokens merge when what they join to is a token, lowest id first.
  bool merges_by_id = false;
  std::optional<int64_t> bos_id;
  std::optional<int64_t> eos_id;
  std::optional<int64_t> eot_id;
  std::optional<int64_t> eom_id;
  std::optional<int64_t> unknown_id;
  std::optional<int64_t> padding_id;
  std::vector<int64_t> fill_in_middle_ids;  // fim_pad, fim_rep and fim_sep: they end generation too
  std::vector<int64_t> end_of_generation_ids;  // what else a file says; ids past the end are none
  std::optional<bool> add_bos;
  std::optional<bool> add_space_prefix;
  std::optional<bool> ignore_merges;  // rank files; GGUF's follows from the pre-tokenizer
  std::string chat_template;
};

// What the file does not say, by kind of tokenizer.
struct VocabularyDefaults {
  std::optional<int64_t> bos_id;
  std::optional<int64_t> eos_id;
  std::optional<int64_t> unknown_id;
  bool add_bos = false;
};

// Checked and immutable; any number of threads may read it.
class Vocabulary {
 public:
  // Errors (InvalidArgument): no tokens; lists of unequal length; an unknown token type; two tokens
  // of equal text, unless empty; a text that is not UTF-8; a special id past the vocabulary. A
  // padding id past it, and a default id past it, count as absent; the former is logged.
  static absl::StatusOr<std::unique_ptr<Vocabulary>> Create(VocabularyData data,
                                                            const VocabularyDefaults& defaults);

  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  int32_t size() const { return static_cast<int32_t>(data_.tokens.size()); }
  const VocabularyData& data() const { return data_; }

  // For ids in [0, size).
  const std::string& Text(int32_t id) const { return data_.tokens[static_cast<size_t>(id)]; }
  TokenType Type(int32_t id) const;

  // The token with this text, or -1.
  int32_t Find(absl::string_view text) const;

  // The same for tokens that ordinary text may become: never a control, unknown or byte token, so
  // that nobody can write one.
  int32_t FindOrdinary(absl::string_view text) const;

  std::optional<int32_t> bos_id() const { return bos_id_; }
  std::optional<int32_t> eos_id() const { return eos_id_; }
  std::optional<int32_t> unknown_id() const { return unknown_id_; }
  std::optional<int32_t> padding_id() const { return padding_id_; }
  bool adds_bos() const { return adds_bos_; }

  // Ascending: the ids that the file names, and control tokens with a spelling that is known to end
  // a turn or a document.
  absl::Span<const int32_t> end_of_generation_ids() const { return end_of_generation_ids_; }

 private:
  explicit Vocabulary(VocabularyData data);
  absl::Status CheckTokens();
  absl::Status ResolveIds(const VocabularyDefaults& defaults);
  absl::StatusOr<std::optional<int32_t>> Resolve(absl::string_view key, std::optional<int64_t> id,
                                                 std::optional<int64_t> default_id) const;
  void FindEndOfGeneration();

  VocabularyData data_;
  absl::flat_hash_map<absl::string_view, int32_t> ids_;  // keys view data_.tokens
  std::optional<int32_t> bos_id_;
  std::optional<int32_t> eos_id_;
  std::optional<int32_t> eot_id_;
  std::optional<int32_t> eom_id_;
  std::optional<int32_t> unknown_id_;
  std::optional<int32_t> padding_id_;
  std::vector<int32_t> fill_in_middle_ids_;
  bool adds_bos_ = false;
  std::vector<int32_t> end_of_generation_ids_;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_VOCABULARY_H_
