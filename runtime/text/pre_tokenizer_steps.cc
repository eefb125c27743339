#include "runtime/text/pre_tokenizer_steps.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/byte_level.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

constexpr char kKnownTypes[] =
    "Sequence, Split, ByteLevel, Digits, Metaspace, Punctuation, Whitespace, WhitespaceSplit";

// The cut of GPT-2, which ByteLevel makes unless told not to.
constexpr char kByteLevelPattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// ASCII's punctuation has symbols in it that Unicode does not count as such.
constexpr char kPunctuationPattern[] = R"([\p{P}!-/:-@\[-`{-~])";

absl::StatusOr<SplitBehavior> BehaviorOf(const JsonFields& fields, absl::string_view otherwise) {
  static constexpr std::pair<absl::string_view, SplitBehavior> kBehaviors[] = {
      {"Isolated", SplitBehavior::kIsolated},
      {"Removed", SplitBehavior::kRemoved},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  std::string name(otherwise);
  if (otherwise.empty() || fields.Find("behavior") != nullptr) {
    ASSIGN_OR_RETURN(name, fields.String("behavior"));
  }
  for (const auto& [known, behavior] : kBehaviors) {
    if (name == known) {
      return behavior;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(fields.PathOf("behavior"), " is \"", name.substr(0, 60),
                   "\"; known: Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous"));
}

// The pieces that `behavior` makes of the parts of one piece, which are [begin, end).
void AppendPieces(const PatternPart* begin, const PatternPart* end, SplitBehavior behavior,
                  std::vector<TextPiece>* pieces) {
  const size_t first = pieces->size();
  bool was_match = false;
  switch (behavior) {
    case SplitBehavior::kIsolated:
      for (const PatternPart* part = begin; part != end; ++part) {
        pieces->push_back(part->piece);
      }
      return;
    case SplitBehavior::kRemoved:
      for (const PatternPart* part = begin; part != end; ++part) {
        if (!part->is_match) {
          pieces->push_back(part->piece);
        }
      }
      return;
    case SplitBehavior::kContiguous:
      for (const PatternPart* part = begin; part != end; ++part) {
        if (pieces->size() > first && part->is_match == was_match) {
          pieces->back().end = part->piece.end;
        } else {
          pieces->push_back(part->piece);
        }
        was_match = part->is_match;
      }
      return;
    case SplitBehavior::kMergedWithPrevious:
      for (const PatternPart* part = begin; part != end; ++part) {
        if (part->is_match && !was_match && pieces->size() > first) {
          pieces->back().end = part->piece.end;
        } else {
          pieces->push_back(part->piece);
        }
        was_match = part->is_match;
      }
      return;
    case SplitBehavior::kMergedWithNext:
      for (const PatternPart* part = end; part != begin;) {
        --part;
        if (part->is_match && !was_match && pieces->size() > first) {
          pieces->back().begin = part->piece.begin;
        } else {
          pieces->push_back(part->piece);
        }
        was_match = part->is_match;
      }
      std::reverse(pieces->begin() + static_cast<std::ptrdiff_t>(first), pieces->end());
      return;
  }
}

// Puts a space before each piece that does not begin with one.
void AddPrefixSpaces(PieceList* list) {
  std::string text;
  text.reserve(list->text.size() + list->pieces.size());
  for (TextPiece& piece : list->pieces) {
    const auto begin = static_cast<uint32_t>(text.size());
    text += list->text[piece.begin] == ' ' ? "" : " ";
    text.append(list->text, piece.begin, piece.end - piece.begin);
    piece = {begin, static_cast<uint32_t>(text.size())};
  }
  list->text = std::move(text);
}

// Writes each byte as the character that stands for it, for a step that follows.
void MapBytes(PieceList* list) {
  std::string text;
  for (TextPiece& piece : list->pieces) {
    const auto begin = static_cast<uint32_t>(text.size());
    for (uint32_t i = piece.begin; i < piece.end; ++i) {
      AppendUtf8(CharacterOfByte(static_cast<uint8_t>(list->text[i])), &text);
    }
    piece = {begin, static_cast<uint32_t>(text.size())};
  }
  list->text = std::move(text);
}

// Cuts after each other: what the first makes of some pieces goes through all that follow before
// it makes more, so that a long text is never held as one list of its pieces.
class PieceBatches {
 public:
  // Both must outlive it; the list's pieces become those of a batch when `use` gets it.
  PieceBatches(PieceList* list, PieceUser use) : list_(*list), use_(use) {}

  void AddCut(const CharacterPattern* pattern) {
    cuts_.push_back({std::make_unique<PatternCutter>(pattern, list_.text), {}});
  }

  // Any number of cuts, none included. `pieces` is none of the list's.
  absl::Status Run(absl::Span<const TextPiece> pieces) {
    if (cuts_.empty()) {
      list_.pieces.assign(pieces.begin(), pieces.end());
      return use_(list_);
    }
    return RunFrom(0, pieces);
  }

 private:
  struct Cut {
    std::unique_ptr<PatternCutter> cutter;
    std::vector<TextPiece> pieces;  // of its parts, for the next cut
  };

  absl::Status RunFrom(size_t index, absl::Span<const TextPiece> pieces) {
    const bool is_last = index + 1 == cuts_.size();
    std::vector<TextPiece>& made = is_last ? list_.pieces : cuts_[index].pieces;
    return cuts_[index].cutter->Cut(
        pieces, [this, index, is_last, &made](absl::Span<const PatternPart> parts) {
          made.resize(parts.size());
          for (size_t i = 0; i < parts.size(); ++i) {
            made[i] = parts[i].piece;
          }
          return is_last ? use_(list_) : RunFrom(index + 1, made);
        });
  }

  PieceList& list_;
  const PieceUser use_;
  std::vector<Cut> cuts_;
};

}  // namespace

absl::StatusOr<PreTokenizerSteps> PreTokenizerSteps::Create(const nlohmann::json& spec,
                                                            const std::string& path) {
  PreTokenizerSteps steps;
  if (!spec.is_null()) {
    RETURN_IF_ERROR(VisitParts(spec, path, "pretokenizers",
                               [&steps](const JsonFields& fields, const std::string& type) {
                                 return steps.Add(fields, type);
                               }));
  }
  steps.gives_bytes_ = !steps.steps_.empty() && steps.steps_.back().kind == Kind::kByteLevel;
  return steps;
}

absl::StatusOr<PreTokenizerSteps> PreTokenizerSteps::CreateFromPatterns(
    const std::vector<std::string>& patterns) {
  PreTokenizerSteps steps;
  for (const std::string& pattern : patterns) {
    RETURN_IF_ERROR(steps.AddPattern(pattern, SplitBehavior::kIsolated, /*inverts=*/false));
  }
  return steps;
}

absl::Status PreTokenizerSteps::AddPattern(absl::string_view pattern, SplitBehavior behavior,
                                           bool inverts) {
  ASSIGN_OR_RETURN(std::unique_ptr<CharacterPattern> compiled, CharacterPattern::Create(pattern));
  steps_.push_back({.pattern = std::move(compiled), .behavior = behavior, .inverts = inverts});
  return absl::OkStatus();
}

absl::Status PreTokenizerSteps::Add(const JsonFields& fields, const std::string& type) {
  if (type == "Split") {
    return AddSplit(fields);
  }
  if (type == "ByteLevel") {
    return AddByteLevel(fields);
  }
  if (type == "Metaspace") {
    return AddMetaspace(fields);
  }
  if (type == "Digits") {
    ASSIGN_OR_RETURN(const bool alone, fields.Flag("individual_digits", false));
    return AddPattern(R"(\p{N})", alone ? SplitBehavior::kIsolated : SplitBehavior::kContiguous,
                      /*inverts=*/false);
  }
  if (type == "Punctuation") {
    ASSIGN_OR_RETURN(const SplitBehavior behavior, BehaviorOf(fields, "Isolated"));
    return AddPattern(kPunctuationPattern, behavior, /*inverts=*/false);
  }
  if (type == "Whitespace") {
    return AddPattern(R"(\w+|[^\w\s]+)", SplitBehavior::kRemoved, /*inverts=*/true);
  }
  if (type == "WhitespaceSplit") {
    return AddPattern(R"(\s)", SplitBehavior::kRemoved, /*inverts=*/false);
  }
  return UnknownType(fields.path(), type, kKnownTypes);
}

absl::Status PreTokenizerSteps::AddSplit(const JsonFields& fields) {
  ASSIGN_OR_RETURN(const JsonFields pattern, fields.Object("pattern"));
  ASSIGN_OR_RETURN(const SplitBehavior behavior, BehaviorOf(fields, ""));
  ASSIGN_OR_RETURN(const bool inverts, fields.Flag("invert", false));
  const bool is_regex = pattern.Find("Regex") != nullptr;
  ASSIGN_OR_RETURN(const std::string text, pattern.String(is_regex ? "Regex" : "String"));
  Step step = {.behavior = behavior, .inverts = inverts};
  if (!text.empty()) {  // an empty string is nowhere
    absl::StatusOr<std::unique_ptr<CharacterPattern>> compiled =
        is_regex ? CharacterPattern::Create(text) : CharacterPattern::CreateLiteral(text);
    if (!compiled.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(fields.PathOf("pattern"), ": ", compiled.status().message()));
    }
    step.pattern = *std::move(compiled);
  }
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status PreTokenizerSteps::AddByteLevel(const JsonFields& fields) {
  ASSIGN_OR_RETURN(const bool prefix, fields.Flag("add_prefix_space", true));
  ASSIGN_OR_RETURN(const bool cuts, fields.Flag("use_regex", true));
  Step step = {.kind = Kind::kByteLevel, .prefix = prefix ? Prefix::kAlways : Prefix::kNever};
  if (cuts) {
    ASSIGN_OR_RETURN(step.pattern, CharacterPattern::Create(kByteLevelPattern));
  }
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status PreTokenizerSteps::AddMetaspace(const JsonFields& fields) {
  Step step = {.kind = Kind::kMetaspace, .prefix = Prefix::kAlways};
  ASSIGN_OR_RETURN(step.replacement, fields.String("replacement"));
  if (step.replacement.empty() ||
      FirstUtf8Unit(step.replacement).bytes != step.replacement.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(fields.PathOf("replacement"), " is not one character"));
  }
  ASSIGN_OR_RETURN(const std::optional<std::string> scheme,
                   fields.OptionalString("prepend_scheme"));
  ASSIGN_OR_RETURN(const bool prefix, fields.Flag("add_prefix_space", true));
  ASSIGN_OR_RETURN(const bool splits, fields.Flag("split", true));
  const std::string name = scheme.value_or(prefix ? "always" : "never");
  if (name != "always" && name != "first" && name != "never") {
    return absl::InvalidArgumentError(absl::StrCat(fields.PathOf("prepend_scheme"), " is \"",
                                                   name.substr(0, 60),
                                                   "\"; known: always, first, never"));
  }
  step.prefix = !prefix || name == "never" ? Prefix::kNever
                                           : (name == "first" ? Prefix::kFirst : Prefix::kAlways);
  if (splits) {
    ASSIGN_OR_RETURN(step.pattern, CharacterPattern::CreateLiteral(step.replacement));
    step.behavior = SplitBehavior::kMergedWithNext;
  }
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status PreTokenizerSteps::ApplyPattern(const Step& step, PieceList* list) {
  if (step.pattern == nullptr) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::vector<PatternPart> parts, step.pattern->Cut(list->text, list->pieces));
  std::vector<TextPiece> pieces;
  pieces.reserve(parts.size());
  size_t begin = 0;
  for (const TextPiece& piece : list->pieces) {
    size_t end = begin;
    for (; end < parts.size() && parts[end].piece.end <= piece.end; ++end) {
      parts[end].is_match = parts[end].is_match != step.inverts;
    }
    AppendPieces(parts.data() + begin, parts.data() + end, step.behavior, &pieces);
    begin = end;
  }
  list->pieces = std::move(pieces);
  return absl::OkStatus();
}

void PreTokenizerSteps::ApplyMetaspace(const Step& step, PieceList* list) {
  std::string text;
  text.reserve(list->text.size() + list->text.size() / 2);
  for (TextPiece& piece : list->pieces) {
    const bool is_first = list->starts_text && piece.begin == 0;
    const auto begin = static_cast<uint32_t>(text.size());
    const absl::string_view bytes =
        absl::string_view(list->text).substr(piece.begin, piece.end - piece.begin);
    const bool has_prefix = bytes[0] == ' ' || absl::StartsWith(bytes, step.replacement);
    const bool wants_prefix =
        step.prefix == Prefix::kAlways || (step.prefix == Prefix::kFirst && is_first);
    if (wants_prefix && !has_prefix) {
      text += step.replacement;
    }
    for (const char byte : bytes) {
      if (byte == ' ') {
        text += step.replacement;
      } else {
        text += byte;
      }
    }
    piece = {begin, static_cast<uint32_t>(text.size())};
  }
  list->text = std::move(text);
}

absl::Status PreTokenizerSteps::ApplyWhole(size_t index, PieceList* list) const {
  const Step& step = steps_[index];
  if (step.kind == Kind::kMetaspace) {
    ApplyMetaspace(step, list);
  } else if (step.kind == Kind::kByteLevel && step.prefix == Prefix::kAlways) {
    AddPrefixSpaces(list);
  }
  RETURN_IF_ERROR(ApplyPattern(step, list));
  if (step.kind == Kind::kByteLevel && index + 1 < steps_.size()) {
    MapBytes(list);
  }
  return absl::OkStatus();
}

size_t PreTokenizerSteps::FirstBatchedStep() const {
  size_t first = steps_.size();
  while (first > 0) {
    const Step& step = steps_[first - 1];
    const bool changes_text = step.kind == Kind::kMetaspace || step.prefix == Prefix::kAlways ||
                              (step.kind == Kind::kByteLevel && first < steps_.size());
    if (changes_text || step.behavior != SplitBehavior::kIsolated) {
      break;
    }
    --first;
  }
  return first;
}

absl::Status PreTokenizerSteps::Apply(PieceList list, PieceUser use) const {
  const size_t first_batched = FirstBatchedStep();
  for (size_t i = 0; i < first_batched; ++i) {
    RETURN_IF_ERROR(ApplyWhole(i, &list));
  }
  PieceBatches batches(&list, use);
  for (size_t i = first_batched; i < steps_.size(); ++i) {
    if (steps_[i].pattern != nullptr) {
      batches.AddCut(steps_[i].pattern.get());
    }
  }
  const std::vector<TextPiece> pieces = std::move(list.pieces);
  return batches.Run(pieces);
}

}  // namespace trireme::text
