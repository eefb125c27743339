#include "launcher/rank_facts.h"

#include <cstring>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "launcher/version.h"
#include "runtime/base/fingerprint.h"
#include "runtime/engine/replica.h"
#include "runtime/text/tokenizer_files.h"
#include "runtime/weights/gguf_value.h"

namespace trireme::launcher {
namespace {

void AddValue(const weights::GgufValue& value, Fingerprint* hash) {
  if (value.type() == weights::GgufType::kArray) {
    hash->Add(value.element_count());
    weights::GgufElements elements(value);
    while (const std::optional<weights::GgufValue> element = elements.Next()) {
      AddValue(*element, hash);
    }
  } else if (const auto text = value.AsString()) {
    hash->Add(static_cast<int64_t>(text->size()));
    hash->Add(*text);
  } else if (const auto integer = value.AsInteger()) {
    hash->Add(*integer);
  } else if (const auto number = value.AsFloat()) {
    int64_t bits = 0;
    std::memcpy(&bits, &*number, sizeof(bits));
    hash->Add(bits);
  } else if (const auto flag = value.AsBool()) {
    hash->Add(int64_t{*flag ? 1 : 0});
  }
}

std::string LayoutText(const topology::Layout& layout) {
  return absl::StrFormat("%d tensor ranks, %d stages, layers [%s]", layout.tensor_ranks,
                         layout.stages, absl::StrJoin(layout.stage_layers, ","));
}

std::string SettingsText(const engine::RankOptions& options) {
  return absl::StrFormat(
      "context %d, KV blocks %d, step tokens %d, sequences %d, KV format %d, activations %d, bad "
      "weights %d",
      options.limits.context, options.limits.blocks, options.limits.tokens,
      options.limits.sequences, static_cast<int>(options.kv_format),
      static_cast<int>(options.activations), static_cast<int>(options.bad_weights));
}

// Of all keys of a GGUF file that make its tokenizer, with their arrays, or of the files beside the
// weights.
absl::StatusOr<uint64_t> TokenizerFingerprint(const weights::Checkpoint& checkpoint) {
  if (checkpoint.gguf() == nullptr) {
    return text::FingerprintTokenizerFiles(engine::TextFolderOf(checkpoint));
  }
  Fingerprint hash;
  for (const weights::GgufEntry& entry : checkpoint.gguf()->metadata().entries()) {
    if (absl::StartsWith(entry.key, "tokenizer.")) {
      hash.Add(entry.key);
      AddValue(entry.value, &hash);
    }
  }
  return hash.value();
}

// Files that this rank cannot read are a difference like any other.
std::string TokenizerText(const weights::Checkpoint& checkpoint) {
  const absl::StatusOr<uint64_t> fingerprint = TokenizerFingerprint(checkpoint);
  return fingerprint.ok() ? absl::StrFormat("%016x", *fingerprint)
                          : std::string(fingerprint.status().message());
}

}  // namespace

std::vector<comm::Fact> RankFacts(const weights::Checkpoint& checkpoint,
                                  const engine::RankOptions& options) {
  return {{"build", BuildId()},
          {"model", absl::StrFormat("%016x", checkpoint.FingerprintValue())},
          {"tokenizer", TokenizerText(checkpoint)},
          {"layout", LayoutText(options.layout)},
          {"settings", SettingsText(options)}};
}

}  // namespace trireme::launcher
