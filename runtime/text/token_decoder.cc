#include "runtime/text/token_decoder.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/byte_level.h"
#include "runtime/text/piece_model.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

constexpr char kKnownTypes[] = "Sequence, ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip";
constexpr uint64_t kStripMax = 1000;

bool IsOneCharacter(absl::string_view text) {
  return !text.empty() && FirstUtf8Unit(text).bytes == text.size();
}

absl::StatusOr<int64_t> CountOf(const JsonFields& fields, absl::string_view key) {
  const nlohmann::json* const value = fields.Find(key);
  const bool fits =
      value != nullptr && value->is_number_unsigned() && value->get<uint64_t>() <= kStripMax;
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is missing or no number from 0 to %d", fields.PathOf(key), kStripMax));
  }
  return static_cast<int64_t>(value->get<uint64_t>());
}

// Up to `start` times `content` at the beginning and `stop` times at the end go away.
std::string Strip(absl::string_view token, absl::string_view content, int64_t start, int64_t stop) {
  while (start-- > 0 && absl::ConsumePrefix(&token, content)) {
  }
  while (stop-- > 0 && absl::ConsumeSuffix(&token, content)) {
  }
  return std::string(token);
}

}  // namespace

absl::StatusOr<TokenDecoder> TokenDecoder::Create(const nlohmann::json& spec,
                                                  const std::string& path) {
  TokenDecoder decoder;
  if (spec.is_null()) {
    decoder.rules_.separator = " ";
    return decoder;
  }
  RETURN_IF_ERROR(VisitParts(spec, path, "decoders",
                             [&decoder](const JsonFields& fields, const std::string& type) {
                               return decoder.Add(fields, type);
                             }));
  return decoder;
}

absl::Status TokenDecoder::Add(const JsonFields& fields, const std::string& type) {
  if (type == "Fuse") {
    is_fused_ = true;
    return absl::OkStatus();
  }
  if (type == "Strip") {
    return AddStrip(fields);
  }
  if (type == "Replace") {
    return AddReplace(fields);
  }
  if (type != "ByteLevel" && type != "ByteFallback" && type != "Metaspace") {
    return UnknownType(fields.path(), type, kKnownTypes);
  }
  if (is_fused_) {
    return absl::InvalidArgumentError(absl::StrCat(
        fields.path(), ": ", type, " behind Fuse works on whole texts and cannot be streamed"));
  }
  if (type == "Metaspace") {
    return AddMetaspace(fields);
  }
  is_fused_ = type == "ByteLevel";  // it joins all tokens
  steps_.push_back({.kind = type == "ByteLevel" ? Kind::kByteLevel : Kind::kByteFallback});
  return absl::OkStatus();
}

absl::Status TokenDecoder::AddReplace(const JsonFields& fields) {
  ASSIGN_OR_RETURN(Normalizer replace, Normalizer::Create(fields.value(), fields.path()));
  // Of the whole text a single character can be replaced token by token.
  const nlohmann::json& pattern = fields.value()["pattern"];
  const bool is_character =
      pattern.contains("String") && IsOneCharacter(pattern["String"].get_ref<const std::string&>());
  if (is_fused_ && !is_character) {
    return absl::InvalidArgumentError(absl::StrCat(
        fields.path(), ": a Replace of more than one character behind Fuse cannot be streamed"));
  }
  steps_.push_back(
      {.kind = Kind::kReplace, .replace = std::make_shared<const Normalizer>(std::move(replace))});
  return absl::OkStatus();
}

absl::Status TokenDecoder::AddStrip(const JsonFields& fields) {
  Step step = {.kind = Kind::kStrip};
  ASSIGN_OR_RETURN(step.content, fields.String("content"));
  ASSIGN_OR_RETURN(step.start, CountOf(fields, "start"));
  ASSIGN_OR_RETURN(step.stop, CountOf(fields, "stop"));
  if (!IsOneCharacter(step.content)) {
    return absl::InvalidArgumentError(
        absl::StrCat(fields.PathOf("content"), " is not one character"));
  }
  if (!is_fused_) {
    steps_.push_back(std::move(step));
    return absl::OkStatus();
  }
  if (step.stop > 0 || step.content != " " || rules_.leading_spaces > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(fields.path(),
                     ": behind Fuse only one Strip of leading spaces can be streamed; this one has "
                     "content \"",
                     step.content, "\" and stop ", step.stop));
  }
  rules_.leading_spaces = step.start;
  return absl::OkStatus();
}

absl::Status TokenDecoder::AddMetaspace(const JsonFields& fields) {
  Step step = {.kind = Kind::kMetaspace};
  ASSIGN_OR_RETURN(step.content, fields.String("replacement"));
  ASSIGN_OR_RETURN(const std::optional<std::string> scheme,
                   fields.OptionalString("prepend_scheme"));
  ASSIGN_OR_RETURN(const bool prefix, fields.Flag("add_prefix_space", true));
  if (!IsOneCharacter(step.content)) {
    return absl::InvalidArgumentError(
        absl::StrCat(fields.PathOf("replacement"), " is not one character"));
  }
  step.drops_first = prefix && scheme.value_or("always") != "never";
  rules_.first_token_differs = rules_.first_token_differs || step.drops_first;
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

std::string TokenDecoder::BytesOf(absl::string_view token, bool is_first, Spelling spelling) const {
  std::string text(token);
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::kByteLevel: {
        if (spelling == Spelling::kLiteral) {
          break;
        }
        ByteLevelText decoded = DecodeByteLevel(text);
        // A token with a character that stands for no byte is written as it is.
        if (decoded.in_alphabet) {
          text = std::move(decoded.bytes);
        }
        break;
      }
      case Kind::kByteFallback: {
        // Lower-case digits count here, though encoding knows upper-case ones only.
        std::string upper = absl::AsciiStrToUpper(text);
        upper = absl::StartsWith(text, "<0x") ? absl::StrCat("<0x", upper.substr(3)) : upper;
        const int byte = ByteOfToken(upper);
        if (byte >= 0) {
          return std::string(1, static_cast<char>(byte));
        }
        break;
      }
      case Kind::kMetaspace:
        text = absl::StrReplaceAll(text, {{step.content, is_first && step.drops_first ? "" : " "}});
        break;
      case Kind::kReplace: {
        absl::StatusOr<std::string> replaced = step.replace->Normalize(text);
        if (replaced.ok()) {
          text = *std::move(replaced);
        }
        break;
      }
      case Kind::kStrip:
        text = Strip(text, step.content, step.start, step.stop);
        break;
    }
  }
  return text;
}

}  // namespace trireme::text
