#include "runtime/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/character_set.h"
#include "runtime/text/json_fields.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

// The start of the last character of `text`, which is not empty.
size_t LastCharacter(absl::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) {
    --begin;
  }
  return begin;
}

bool IsWord(absl::string_view character) {
  return WordCharacters().Contains(FirstUtf8Unit(character).code_point);
}

bool IsSpace(absl::string_view character) {
  return WhiteSpaceCharacters().Contains(FirstUtf8Unit(character).code_point);
}

bool StandsAlone(absl::string_view text, size_t begin, size_t end) {
  const bool has_word_before =
      begin > 0 && IsWord(text.substr(LastCharacter(text.substr(0, begin))));
  return !has_word_before && (end == text.size() || !IsWord(text.substr(end)));
}

// Where the white space before `begin` starts, not before `first`.
size_t SpaceBegin(absl::string_view text, size_t begin, size_t first) {
  while (begin > first) {
    const size_t last = LastCharacter(text.substr(0, begin));
    if (!IsSpace(text.substr(last))) {
      break;
    }
    begin = last;
  }
  return std::max(begin, first);
}

size_t SpaceEnd(absl::string_view text, size_t end) {
  while (end < text.size() && IsSpace(text.substr(end))) {
    end += FirstUtf8Unit(text.substr(end)).bytes;
  }
  return end;
}

absl::StatusOr<AddedToken> ReadAddedToken(const nlohmann::json& json, const std::string& path) {
  ASSIGN_OR_RETURN(const JsonFields fields, JsonFields::Of(json, path));
  AddedToken token;
  ASSIGN_OR_RETURN(token.content, fields.String("content"));
  ASSIGN_OR_RETURN(token.id, fields.Id("id"));
  ASSIGN_OR_RETURN(token.is_special, fields.Flag("special", false));
  ASSIGN_OR_RETURN(token.single_word, fields.Flag("single_word", false));
  ASSIGN_OR_RETURN(token.takes_left, fields.Flag("lstrip", false));
  ASSIGN_OR_RETURN(token.takes_right, fields.Flag("rstrip", false));
  ASSIGN_OR_RETURN(token.is_normalized, fields.Flag("normalized", !token.is_special));
  if (token.content.size() > kAddedTokenBytesMax) {
    return absl::InvalidArgumentError(absl::StrFormat("%s has %d bytes; at most %d are supported",
                                                      fields.PathOf("content"),
                                                      token.content.size(), kAddedTokenBytesMax));
  }
  return token;
}

}  // namespace

absl::StatusOr<std::vector<AddedToken>> ReadAddedTokens(const nlohmann::json& list,
                                                        const std::string& path,
                                                        std::vector<std::string>* tokens) {
  absl::flat_hash_map<std::string, int32_t> ids;
  ids.reserve(tokens->size());
  for (size_t i = 0; i < tokens->size(); ++i) {
    ids.emplace((*tokens)[i], static_cast<int32_t>(i));
  }
  std::vector<AddedToken> added;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string place = absl::StrFormat("%s[%d]", path, i);
    ASSIGN_OR_RETURN(AddedToken token, ReadAddedToken(list[i], place));
    const auto [entry, is_new] =
        ids.try_emplace(token.content, static_cast<int32_t>(tokens->size()));
    if (token.id != entry->second) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: the token \"%s\" has the id %d; wanted %d, %s", place,
                          absl::CHexEscape(token.content.substr(0, 60)), token.id, entry->second,
                          is_new ? "the next one that is free" : "which it has in the vocabulary"));
    }
    if (is_new) {
      tokens->push_back(token.content);
    }
    added.push_back(std::move(token));
  }
  return added;
}

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    uint32_t node = 0;
    for (const char byte : tokens_[i].content) {
      const auto [edge, is_new] =
          edges_.try_emplace(Edge(node, byte), static_cast<uint32_t>(token_of_node_.size()));
      if (is_new) {
        token_of_node_.push_back(-1);
      }
      node = edge->second;
    }
    if (node != 0) {
      token_of_node_[node] = static_cast<int32_t>(i);
      begins_[static_cast<uint8_t>(tokens_[i].content[0])] = true;
    }
  }
}

std::vector<SpecialTokenMatch> AddedTokenFinder::Find(
    absl::string_view text,
    absl::FunctionRef<AddedTokenVerdict(const AddedToken&, size_t begin, size_t end)> judge) const {
  std::vector<SpecialTokenMatch> matches;
  size_t done = 0;       // the text before is settled
  size_t space_end = 0;  // up to here white space was swallowed already
  for (size_t position = 0; position < text.size();) {
    if (!begins_[static_cast<uint8_t>(text[position])]) {
      ++position;
      continue;
    }
    const AddedToken* found = nullptr;
    AddedTokenVerdict verdict = AddedTokenVerdict::kAbsent;
    uint32_t node = 0;
    for (size_t i = position; i < text.size(); ++i) {
      const auto edge = edges_.find(Edge(node, text[i]));
      if (edge == edges_.end()) {
        break;
      }
      node = edge->second;
      if (token_of_node_[node] < 0) {
        continue;
      }
      const AddedToken& token = tokens_[static_cast<size_t>(token_of_node_[node])];
      const AddedTokenVerdict judged = judge(token, position, i + 1);
      if (judged != AddedTokenVerdict::kAbsent) {
        found = &token;
        verdict = judged;
      }
    }
    if (found == nullptr) {
      ++position;
      continue;
    }
    size_t begin = position;
    size_t end = position + found->content.size();
    position = end;
    const bool is_word_part = found->single_word && !StandsAlone(text, begin, end);
    if (verdict == AddedTokenVerdict::kText || is_word_part) {
      continue;
    }
    begin = found->takes_left ? SpaceBegin(text, begin, std::min(done, begin)) : begin;
    if (found->takes_right) {
      space_end = end < space_end ? space_end : SpaceEnd(text, end);
      end = space_end;
    }
    matches.push_back({begin, end, found->id});
    done = end;
  }
  return matches;
}

}  // namespace trireme::text
