// The "normalizer" of a tokenizer.json: what happens to a text before it is cut into pieces.
#ifndef TRIREME_RUNTIME_TEXT_NORMALIZER_H_
#define TRIREME_RUNTIME_TEXT_NORMALIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "runtime/text/character_pattern.h"
#include "runtime/text/json_fields.h"
#include "runtime/text/precompiled_map.h"
#include "runtime/text/unicode_forms.h"

namespace trireme::text {

// Where in the whole a part of a text stands that is normalized by itself.
enum class NormalizedPart : uint8_t {
  kWhole,
  kMiddle,  // without what happens at the ends only: prepending and stripping
};

// Immutable after Create; any number of threads may call it.
class Normalizer {
 public:
  // From a normalizer's JSON, null included. Known types: Sequence, NFC, NFD, NFKC, NFKD,
  // Lowercase, StripAccents, Strip, Prepend, Replace, ByteLevel, Precompiled. Errors
  // (InvalidArgument): any other type, and members that are missing or wrong; the message begins
  // with `path`.
  static absl::StatusOr<Normalizer> Create(const nlohmann::json& spec, const std::string& path);

  bool is_identity() const { return steps_.empty(); }

  // Errors: those of CharacterPattern::Cut; InvalidArgument when the text grows beyond 1 GiB.
  absl::StatusOr<std::string> Normalize(absl::string_view text,
                                        NormalizedPart part = NormalizedPart::kWhole) const;

 private:
  enum class Kind : uint8_t {
    kForm,
    kLowercase,
    kStripAccents,
    kStrip,
    kPrepend,
    kReplaceText,
    kReplacePattern,
    kByteLevel,
    kPrecompiled
  };
  struct Step {
    Kind kind;
    UnicodeForm form = UnicodeForm::kNfc;
    bool left = false;
    bool right = false;
    std::string pattern_text;  // kReplaceText
    std::shared_ptr<const CharacterPattern> pattern;
    std::shared_ptr<const PrecompiledMap> map;
    std::string content;  // of kPrepend and the replacements
  };

  absl::Status Add(const JsonFields& fields, const std::string& type);
  absl::Status AddReplace(const JsonFields& fields);
  absl::Status AddPrecompiled(const JsonFields& fields);
  static absl::StatusOr<std::string> Run(const Step& step, absl::string_view text);

  std::vector<Step> steps_;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_NORMALIZER_H_
