#include "runtime/text/normalizer.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/byte_level.h"
#include "runtime/text/normal_form_table.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

constexpr char kKnownTypes[] =
    "Sequence, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, ByteLevel, "
    "Precompiled";
constexpr size_t kTextBytesMax = size_t{1} << 30;

std::optional<UnicodeForm> FormOf(absl::string_view type) {
  static constexpr std::pair<absl::string_view, UnicodeForm> kForms[] = {
      {"NFC", UnicodeForm::kNfc},
      {"NFD", UnicodeForm::kNfd},
      {"NFKC", UnicodeForm::kNfkc},
      {"NFKD", UnicodeForm::kNfkd}};
  for (const auto& [name, form] : kForms) {
    if (type == name) {
      return form;
    }
  }
  return std::nullopt;
}

std::string MapBytes(absl::string_view text) {
  std::string mapped;
  for (const char byte : text) {
    AppendUtf8(CharacterOfByte(static_cast<uint8_t>(byte)), &mapped);
  }
  return mapped;
}

// `pattern` is not empty.
std::string ReplaceText(absl::string_view text, absl::string_view pattern,
                        absl::string_view content) {
  std::string result;
  result.reserve(text.size() + text.size() / 2);
  size_t done = 0;
  for (size_t found = text.find(pattern[0]); found != absl::string_view::npos;) {
    if (!absl::StartsWith(text.substr(found), pattern)) {
      found = text.find(pattern[0], found + 1);
      continue;
    }
    result.append(text.data() + done, found - done).append(content.data(), content.size());
    done = found + pattern.size();
    found = text.find(pattern[0], done);
  }
  result.append(text.data() + done, text.size() - done);
  return result;
}

absl::StatusOr<std::string> ReplaceMatches(absl::string_view text, const CharacterPattern& pattern,
                                           absl::string_view content) {
  const TextPiece whole = {0, static_cast<uint32_t>(text.size())};
  ASSIGN_OR_RETURN(const std::vector<PatternPart> parts,
                   pattern.Cut(text, absl::MakeConstSpan(&whole, 1)));
  std::string result;
  for (const PatternPart& part : parts) {
    absl::StrAppend(
        &result,
        part.is_match ? content : text.substr(part.piece.begin, part.piece.end - part.piece.begin));
  }
  return result;
}

}  // namespace

absl::StatusOr<Normalizer> Normalizer::Create(const nlohmann::json& spec, const std::string& path) {
  Normalizer normalizer;
  if (!spec.is_null()) {
    RETURN_IF_ERROR(VisitParts(spec, path, "normalizers",
                               [&normalizer](const JsonFields& fields, const std::string& type) {
                                 return normalizer.Add(fields, type);
                               }));
  }
  return normalizer;
}

absl::Status Normalizer::Add(const JsonFields& fields, const std::string& type) {
  if (const std::optional<UnicodeForm> form = FormOf(type); form.has_value()) {
    NormalFormTable::Get();  // made now, so that no text waits for it
    steps_.push_back({.kind = Kind::kForm, .form = *form});
  } else if (type == "Lowercase") {
    steps_.push_back({.kind = Kind::kLowercase});
  } else if (type == "StripAccents") {
    steps_.push_back({.kind = Kind::kStripAccents});
  } else if (type == "ByteLevel") {
    steps_.push_back({.kind = Kind::kByteLevel});
  } else if (type == "Strip") {
    Step step = {.kind = Kind::kStrip};
    ASSIGN_OR_RETURN(step.left, fields.Flag("strip_left", true));
    ASSIGN_OR_RETURN(step.right, fields.Flag("strip_right", true));
    steps_.push_back(std::move(step));
  } else if (type == "Prepend") {
    Step step = {.kind = Kind::kPrepend};
    ASSIGN_OR_RETURN(step.content, fields.String("prepend"));
    steps_.push_back(std::move(step));
  } else if (type == "Replace") {
    return AddReplace(fields);
  } else if (type == "Precompiled") {
    return AddPrecompiled(fields);
  } else {
    return UnknownType(fields.path(), type, kKnownTypes);
  }
  return absl::OkStatus();
}

absl::Status Normalizer::AddReplace(const JsonFields& fields) {
  ASSIGN_OR_RETURN(const JsonFields pattern, fields.Object("pattern"));
  Step step = {.kind = Kind::kReplaceText};
  ASSIGN_OR_RETURN(step.content, fields.String("content"));
  if (pattern.Find("Regex") != nullptr) {
    step.kind = Kind::kReplacePattern;
    ASSIGN_OR_RETURN(const std::string text, pattern.String("Regex"));
    absl::StatusOr<std::unique_ptr<CharacterPattern>> compiled = CharacterPattern::Create(text);
    if (!compiled.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(fields.PathOf("pattern"), ": ", compiled.status().message()));
    }
    step.pattern = *std::move(compiled);
  } else {
    ASSIGN_OR_RETURN(step.pattern_text, pattern.String("String"));
  }
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status Normalizer::AddPrecompiled(const JsonFields& fields) {
  ASSIGN_OR_RETURN(const std::string text, fields.String("precompiled_charsmap"));
  std::string bytes;
  if (!absl::Base64Unescape(text, &bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(fields.PathOf("precompiled_charsmap"), " is no base64"));
  }
  absl::StatusOr<PrecompiledMap> map = PrecompiledMap::Create(bytes);
  if (!map.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(fields.PathOf("precompiled_charsmap"), ": ", map.status().message()));
  }
  Step step = {.kind = Kind::kPrecompiled};
  step.map = std::make_shared<const PrecompiledMap>(*std::move(map));
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Normalizer::Run(const Step& step, absl::string_view text) {
  switch (step.kind) {
    case Kind::kForm:
      return ToUnicodeForm(text, step.form);
    case Kind::kLowercase:
      return ToLowerCase(text);
    case Kind::kStripAccents:
      return WithoutMarks(text);
    case Kind::kStrip:
      return std::string(StripWhiteSpace(text, step.left, step.right));
    case Kind::kPrepend:
      return text.empty() ? std::string() : absl::StrCat(step.content, text);
    case Kind::kReplaceText:
      return step.pattern_text.empty() ? std::string(text)
                                       : ReplaceText(text, step.pattern_text, step.content);
    case Kind::kReplacePattern:
      return ReplaceMatches(text, *step.pattern, step.content);
    case Kind::kByteLevel:
      return MapBytes(text);
    case Kind::kPrecompiled:
      return step.map->ApplyByGraphemes(text);
  }
  return std::string(text);
}

absl::StatusOr<std::string> Normalizer::Normalize(absl::string_view text,
                                                  NormalizedPart part) const {
  std::string result(text);
  for (const Step& step : steps_) {
    const bool at_ends_only = step.kind == Kind::kPrepend || step.kind == Kind::kStrip;
    if (at_ends_only && part == NormalizedPart::kMiddle) {
      continue;
    }
    ASSIGN_OR_RETURN(result, Run(step, result));
    if (result.size() >= kTextBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrFormat("the normalizer makes %d bytes of a text; fewer than %d are possible",
                          result.size(), kTextBytesMax));
    }
  }
  return result;
}

}  // namespace trireme::text
