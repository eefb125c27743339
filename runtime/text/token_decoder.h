// The "decoder" of a tokenizer.json: what bytes a token stands for in a text. Decoders work on
// whole lists of tokens; those that say more than one token's text and a rule for the beginning of
// a text cannot be streamed and are refused.
#ifndef TRIREME_RUNTIME_TEXT_TOKEN_DECODER_H_
#define TRIREME_RUNTIME_TEXT_TOKEN_DECODER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "runtime/text/json_fields.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/text_pipeline.h"

namespace trireme::text {

// Immutable after Create; any number of threads may call it.
class TokenDecoder {
 public:
  // From a decoder's JSON; null joins tokens with spaces. Known types: Sequence, ByteLevel,
  // ByteFallback, Fuse, Metaspace, Replace, Strip. Errors (InvalidArgument): any other type,
  // members that are missing or wrong, and combinations that cannot be streamed; the message begins
  // with `path`.
  static absl::StatusOr<TokenDecoder> Create(const nlohmann::json& spec, const std::string& path);

  // How the texts of tokens join.
  const DecodeRules& rules() const { return rules_; }

  // The bytes of one token's text, which may be a part of a character. `is_first`: no other token
  // of the text was shown before it. `spelling` kLiteral: the token is written in characters that
  // stand for themselves, whatever bytes they may stand for.
  enum class Spelling : uint8_t { kVocabulary, kLiteral };
  std::string BytesOf(absl::string_view token, bool is_first,
                      Spelling spelling = Spelling::kVocabulary) const;

 private:
  enum class Kind : uint8_t { kByteLevel, kByteFallback, kMetaspace, kReplace, kStrip };
  struct Step {
    Kind kind;
    std::shared_ptr<const Normalizer> replace;
    std::string content;  // of kStrip; the replacement of kMetaspace
    int64_t start = 0;    // kStrip: how many go away at most
    int64_t stop = 0;
    bool drops_first = false;  // kMetaspace
  };

  absl::Status Add(const JsonFields& fields, const std::string& type);
  absl::Status AddReplace(const JsonFields& fields);
  absl::Status AddStrip(const JsonFields& fields);
  absl::Status AddMetaspace(const JsonFields& fields);

  std::vector<Step> steps_;
  bool is_fused_ = false;  // while reading: what follows works on the whole text
  DecodeRules rules_;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_TOKEN_DECODER_H_
