// Cuts a normalized text into the pieces ("words") inside which the model may merge: what the
// "pre_tokenizer" of a tokenizer.json says, or the patterns of a family (pre_tokenizer_families.h).
#ifndef TRIREME_RUNTIME_TEXT_PRE_TOKENIZER_STEPS_H_
#define TRIREME_RUNTIME_TEXT_PRE_TOKENIZER_STEPS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/text/character_pattern.h"
#include "runtime/text/json_fields.h"

namespace trireme::text {

// A text and the pieces of it that count, ascending and not empty.
struct PieceList {
  std::string text;
  std::vector<TextPiece> pieces;
  bool starts_text = false;  // the list's beginning is that of the whole text
};

// What becomes of the matches of a pattern.
enum class SplitBehavior : uint8_t {
  kIsolated,  // pieces of their own
  kRemoved,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous,  // like isolated, but neighbouring matches stay together
};

using PieceUser = absl::FunctionRef<absl::Status(const PieceList&)>;

// Immutable after Create; any number of threads may call it.
class PreTokenizerSteps {
 public:
  // From a pre_tokenizer's JSON, null included. Known types: Sequence, Split, ByteLevel, Digits,
  // Metaspace, Punctuation, Whitespace, WhitespaceSplit. Errors (InvalidArgument): any other type,
  // and members that are missing or wrong; the message begins with `path`.
  static absl::StatusOr<PreTokenizerSteps> Create(const nlohmann::json& spec,
                                                  const std::string& path);

  // One cut after the other, each leaving matches and what lies between them as pieces. Errors:
  // those of CharacterPattern::Create.
  static absl::StatusOr<PreTokenizerSteps> CreateFromPatterns(
      const std::vector<std::string>& patterns);

  // True when the last step is ByteLevel. The pieces are then left as bytes, of which each stands
  // for a character of the vocabulary (byte_level.h).
  bool gives_bytes() const { return gives_bytes_; }

  // Hands `use` the pieces of what the list begins as, a batch after the other; the list holds the
  // batch, and the text that its places are in, which does not change between batches. Errors:
  // those of CharacterPattern::Cut and of `use`.
  absl::Status Apply(PieceList list, PieceUser use) const;

 private:
  enum class Kind : uint8_t { kSplit, kByteLevel, kMetaspace };
  enum class Prefix : uint8_t { kAlways, kFirst, kNever };
  struct Step {
    Kind kind = Kind::kSplit;
    std::shared_ptr<const CharacterPattern> pattern;  // null: no cut
    SplitBehavior behavior = SplitBehavior::kIsolated;
    bool inverts = false;
    Prefix prefix = Prefix::kNever;
    std::string replacement;  // kMetaspace
  };

  absl::Status Add(const JsonFields& fields, const std::string& type);
  absl::Status AddPattern(absl::string_view pattern, SplitBehavior behavior, bool inverts);
  absl::Status AddSplit(const JsonFields& fields);
  absl::Status AddByteLevel(const JsonFields& fields);
  absl::Status AddMetaspace(const JsonFields& fields);
  static absl::Status ApplyPattern(const Step& step, PieceList* list);
  static void ApplyMetaspace(const Step& step, PieceList* list);
  absl::Status ApplyWhole(size_t index, PieceList* list) const;
  // The first of the last steps that only cut a piece into its parts, so that batches suffice them.
  size_t FirstBatchedStep() const;

  std::vector<Step> steps_;
  bool gives_bytes_ = false;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_PRE_TOKENIZER_STEPS_H_
