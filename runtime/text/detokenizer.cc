#include "runtime/text/detokenizer.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "runtime/text/utf8.h"

namespace trireme::text {

std::string Utf8Assembler::Append(absl::string_view bytes) {
  std::string joined = std::move(held_);
  absl::StrAppend(&joined, bytes);
  held_.clear();
  std::string text;
  absl::string_view rest = joined;
  while (!rest.empty()) {
    const Utf8Unit unit = FirstUtf8Unit(rest);
    if (unit.kind == Utf8UnitKind::kIncomplete) {
      held_ = std::string(rest);
      break;
    }
    const bool whole = unit.kind == Utf8UnitKind::kCharacter;
    absl::StrAppend(&text, whole ? rest.substr(0, unit.bytes) : kReplacementCharacter);
    rest.remove_prefix(unit.bytes);
  }
  return text;
}

std::string Utf8Assembler::Finish() {
  const bool held = !held_.empty();
  held_.clear();
  return held ? std::string(kReplacementCharacter) : std::string();
}

Detokenizer::Detokenizer(const Tokenizer* tokenizer, SpecialTokenDisplay display, TextStart start)
    : tokenizer_(tokenizer),
      display_(display),
      is_start_(start == TextStart::kWhole),
      spaces_to_drop_(is_start_ ? tokenizer->decode_rules().leading_spaces : 0) {}

std::string Detokenizer::Append(int32_t id) {
  const DecodeRules& rules = tokenizer_->decode_rules();
  const int64_t spaces_to_drop = spaces_to_drop_;
  spaces_to_drop_ = rules.only_of_first_token ? 0 : spaces_to_drop_;
  if (display_ == SpecialTokenDisplay::kHide && tokenizer_->IsControl(id)) {
    return "";
  }
  const bool is_first = std::exchange(is_start_, false);
  std::string first_bytes;
  absl::string_view bytes = tokenizer_->TokenBytes(id);
  if (is_first && rules.first_token_differs) {
    first_bytes = tokenizer_->FirstTokenBytes(id);
    bytes = first_bytes;
  }
  int64_t dropped = 0;
  while (dropped < spaces_to_drop && absl::ConsumePrefix(&bytes, " ")) {
    ++dropped;
  }
  // Another character than a space ends the beginning.
  spaces_to_drop_ = rules.only_of_first_token || !bytes.empty() ? 0 : spaces_to_drop - dropped;
  if (rules.separator.empty()) {
    return assembler_.Append(bytes);
  }
  const bool has_text = std::exchange(has_text_, true);
  return assembler_.Append(absl::StrCat(has_text ? rules.separator : "", bytes));
}

std::string Detokenizer::Finish() { return assembler_.Finish(); }

absl::StatusOr<std::string> Decode(const Tokenizer& tokenizer, absl::Span<const int32_t> ids,
                                   SpecialTokenDisplay display, TextStart start) {
  Detokenizer detokenizer(&tokenizer, display, start);
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= tokenizer.vocabulary_size()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "token id %d at position %d is outside the vocabulary, which has ids 0 to %d", ids[i], i,
          tokenizer.vocabulary_size() - 1));
    }
    absl::StrAppend(&text, detokenizer.Append(ids[i]));
  }
  absl::StrAppend(&text, detokenizer.Finish());
  return text;
}

}  // namespace trireme::text
