#include "runtime/text/rank_file.h"

#include <array>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"

namespace trireme::text {
namespace {

struct RankLine {
  std::string token;
  int64_t rank = -1;
};

absl::Status LineError(size_t line, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "line %d %s; wanted the base64 of a token's bytes, a space and its rank", line, problem));
}

// The next line without its end; `rest` is what follows.
absl::string_view TakeLine(absl::string_view* rest) {
  const size_t end = rest->find('\n');
  const absl::string_view line = rest->substr(0, end);
  *rest = end == absl::string_view::npos ? absl::string_view() : rest->substr(end + 1);
  return absl::StripTrailingAsciiWhitespace(line);
}

bool IsBase64(absl::string_view text) {
  for (const char c : text) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '+' && c != '/' && c != '=') {
      return false;
    }
  }
  return !text.empty() && text.size() % 4 == 0;
}

absl::StatusOr<RankLine> ParseLine(absl::string_view text, size_t line) {
  const size_t space = text.find(' ');
  RankLine result;
  const absl::string_view code = text.substr(0, space);
  if (space == absl::string_view::npos || !IsBase64(code) ||
      !absl::Base64Unescape(code, &result.token) || result.token.empty()) {
    return LineError(line, absl::StrFormat("is \"%s\"", absl::CHexEscape(text.substr(0, 60))));
  }
  if (result.token.size() > kRankTokenBytesMax) {
    return LineError(line, absl::StrFormat("has a token of %d bytes, over %d", result.token.size(),
                                           kRankTokenBytesMax));
  }
  const absl::string_view digits = text.substr(space + 1);
  const bool all_digits = digits.find_first_not_of("0123456789") == absl::string_view::npos;
  if (!all_digits || !absl::SimpleAtoi(digits, &result.rank)) {
    return LineError(
        line, absl::StrFormat("has the rank \"%s\"", absl::CHexEscape(digits.substr(0, 60))));
  }
  return result;
}

// Every byte must be a token, or a text could not be written.
absl::Status CheckBytes(const std::vector<std::string>& tokens) {
  std::array<bool, 256> is_token = {};
  for (const std::string& token : tokens) {
    if (token.size() == 1) {
      is_token[static_cast<unsigned char>(token[0])] = true;
    }
  }
  for (size_t byte = 0; byte < is_token.size(); ++byte) {
    if (!is_token[byte]) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the byte 0x%02x is none of the %d tokens; wanted all 256 bytes", byte, tokens.size()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsRankFile(absl::string_view file) { return ParseLine(TakeLine(&file), 1).ok(); }

absl::StatusOr<std::vector<std::string>> ReadRankFile(absl::string_view file) {
  absl::flat_hash_map<int64_t, std::pair<std::string, size_t>> lines;  // by rank: token and line
  size_t line = 0;
  while (!file.empty()) {
    const absl::string_view text = TakeLine(&file);
    ++line;
    if (text.empty()) {
      continue;
    }
    ASSIGN_OR_RETURN(RankLine parsed, ParseLine(text, line));
    const auto [entry, is_new] = lines.try_emplace(parsed.rank, std::move(parsed.token), line);
    if (!is_new) {
      return LineError(line, absl::StrFormat("has the rank %d, which line %d has too", parsed.rank,
                                             entry->second.second));
    }
  }
  std::vector<std::string> tokens(lines.size());
  for (auto& [rank, token_and_line] : lines) {
    if (rank >= static_cast<int64_t>(tokens.size())) {
      return LineError(
          token_and_line.second,
          absl::StrFormat("has the rank %d, but there are %d tokens: a rank is missing", rank,
                          tokens.size()));
    }
    tokens[static_cast<size_t>(rank)] = std::move(token_and_line.first);
  }
  absl::flat_hash_map<absl::string_view, size_t> ranks;
  for (size_t rank = 0; rank < tokens.size(); ++rank) {
    const auto [entry, is_new] = ranks.try_emplace(tokens[rank], rank);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrFormat("the ranks %d and %d have the same token", entry->second, rank));
    }
  }
  RETURN_IF_ERROR(CheckBytes(tokens));
  return tokens;
}

}  // namespace trireme::text
