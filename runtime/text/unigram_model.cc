#include "runtime/text/unigram_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/byte_level.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

// An unknown character is this much worse than the worst token.
constexpr double kUnknownPenalty = 10;

// A score as the reference reads it: all digits as one whole number, then one division by a power
// of ten. That rounds twice, and texts with several best cuts show it.
double ScoreOf(const nlohmann::json& value) {
  const auto exact = value.get<double>();
  if (!value.is_number_float() || !std::isfinite(exact) || exact == 0) {
    return exact;
  }
  // The shortest digits that mean this number, which are those that files have: d.ddde-dd.
  char text[64];
  const std::to_chars_result written =
      std::to_chars(text, text + sizeof(text), std::abs(exact), std::chars_format::scientific);
  uint64_t digits = 0;
  int exponent = 0;
  const char* c = text;
  bool is_fraction = false;
  for (; c != written.ptr && *c != 'e'; ++c) {
    if (*c == '.') {
      is_fraction = true;
      continue;
    }
    digits = digits * 10 + static_cast<uint64_t>(*c - '0');
    exponent -= is_fraction ? 1 : 0;
  }
  int written_exponent = 0;
  (void)std::from_chars(c + (c + 1 != written.ptr && c[1] == '+' ? 2 : 1), written.ptr,
                        written_exponent);
  exponent += written_exponent;
  if (std::abs(exponent) > 22) {  // no exact power of ten
    return exact;
  }
  const double power = std::pow(10.0, std::abs(exponent));
  const double whole = static_cast<double>(digits);
  return std::copysign(exponent < 0 ? whole / power : whole * power, exact);
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnigramModel>> UnigramModel::Create(
    const JsonFields& model, const std::vector<std::string>& tokens, bool gives_bytes) {
  auto result = std::unique_ptr<UnigramModel>(new UnigramModel());
  result->gives_bytes_ = gives_bytes;
  ASSIGN_OR_RETURN(result->falls_back_to_bytes_, model.Flag("byte_fallback", false));
  ASSIGN_OR_RETURN(const nlohmann::json* vocabulary, model.List("vocab"));
  if (model.Find("unk_id") != nullptr) {
    ASSIGN_OR_RETURN(result->unknown_id_, model.Id("unk_id"));
    if (static_cast<size_t>(*result->unknown_id_) >= tokens.size()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s is %d, but the vocabulary has %d tokens", model.PathOf("unk_id"),
                          *result->unknown_id_, tokens.size()));
    }
  }
  double lowest = tokens.empty() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string path = absl::StrFormat("%s[%d]", model.PathOf("vocab"), i);
    const nlohmann::json& score = (*vocabulary)[i][1];
    if (!score.is_number() || !std::isfinite(score.get<double>())) {
      return absl::InvalidArgumentError(absl::StrCat(path, " has no score that is a number"));
    }
    if (tokens[i].size() > UnigramTrie<double>::kTokenBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s has a token of %d bytes; at most %d are supported", path,
                          tokens[i].size(), UnigramTrie<double>::kTokenBytesMax));
    }
    const double value = ScoreOf(score);
    lowest = std::min(lowest, value);
    if (!tokens[i].empty()) {
      result->trie_.Add(tokens[i], static_cast<int32_t>(i), value);
    }
  }
  result->unknown_score_ = lowest - kUnknownPenalty;
  result->byte_ids_ = FindByteTokens(tokens);
  return result;
}

absl::Status UnigramModel::AppendUnknown(absl::string_view text, std::vector<int32_t>* ids) const {
  const bool has_bytes =
      falls_back_to_bytes_ && std::all_of(text.begin(), text.end(), [this](char byte) {
        return byte_ids_[static_cast<uint8_t>(byte)] >= 0;
      });
  if (has_bytes) {
    for (const char byte : text) {
      ids->push_back(byte_ids_[static_cast<uint8_t>(byte)]);
    }
    return absl::OkStatus();
  }
  if (!unknown_id_.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the text has \"", absl::CHexEscape(text.substr(0, 60)),
                     "\", for which this vocabulary has neither tokens nor an unknown token"));
  }
  ids->push_back(*unknown_id_);
  return absl::OkStatus();
}

absl::Status UnigramModel::EncodePiece(absl::string_view text, std::vector<int32_t>* ids) const {
  const auto parts = trie_.Cut(text, unknown_score_);
  for (size_t i = 0; i < parts.size();) {
    const bool is_unknown = parts[i].id < 0 || parts[i].id == unknown_id_;
    if (!is_unknown) {
      ids->push_back(parts[i++].id);
      continue;
    }
    const size_t begin = parts[i].begin;
    size_t end = parts[i].end;
    const bool is_token = parts[i].id >= 0;  // the text is the unknown token's own spelling
    size_t run = 0;
    for (++i, ++run; i < parts.size() && (parts[i].id < 0 || parts[i].id == unknown_id_); ++i) {
      end = parts[i].end;
      ++run;
    }
    if (is_token && run == 1) {
      ids->push_back(*unknown_id_);
      continue;
    }
    RETURN_IF_ERROR(AppendUnknown(text.substr(begin, end - begin), ids));
  }
  return absl::OkStatus();
}

absl::Status UnigramModel::Encode(const PieceList& list, std::vector<int32_t>* ids) const {
  for (const TextPiece& piece : list.pieces) {
    const absl::string_view text =
        absl::string_view(list.text).substr(piece.begin, piece.end - piece.begin);
    if (!gives_bytes_) {
      RETURN_IF_ERROR(EncodePiece(text, ids));
      continue;
    }
    std::string mapped;
    for (const char byte : text) {
      AppendUtf8(CharacterOfByte(static_cast<uint8_t>(byte)), &mapped);
    }
    RETURN_IF_ERROR(EncodePiece(mapped, ids));
  }
  return absl::OkStatus();
}

}  // namespace trireme::text
