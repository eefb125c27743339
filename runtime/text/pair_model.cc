#include "runtime/text/pair_model.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/byte_level.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

using TokenIds = absl::flat_hash_map<absl::string_view, int32_t>;

std::string Shown(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, 60)), "\"");
}

struct MergeText {
  absl::string_view left;
  absl::string_view right;
};

// "left right" with exactly one space, or ["left", "right"].
absl::StatusOr<MergeText> MergeOf(const nlohmann::json& entry, const std::string& path) {
  if (entry.is_string()) {
    const absl::string_view text = entry.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != absl::string_view::npos && text.find(' ', space + 1) == absl::string_view::npos) {
      return MergeText{text.substr(0, space), text.substr(space + 1)};
    }
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is ", Shown(text), "; wanted two tokens with one space between them"));
  }
  const bool is_pair =
      entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string();
  if (!is_pair) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is ", entry.dump().substr(0, 60), "; wanted a pair of tokens"));
  }
  return MergeText{entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>()};
}

absl::StatusOr<int32_t> FindToken(const TokenIds& ids, absl::string_view token,
                                  const std::string& path) {
  const auto entry = ids.find(token);
  if (entry == ids.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the token ", Shown(token), " is not in model.vocab"));
  }
  return entry->second;
}

absl::StatusOr<PairTable> ReadMerges(const JsonFields& model, const TokenIds& ids) {
  ASSIGN_OR_RETURN(const nlohmann::json* merges, model.List("merges"));
  PairTable pairs(merges->size());
  // From the last one on, since the table keeps what it has first.
  for (size_t i = merges->size(); i > 0; --i) {
    const size_t rank = i - 1;
    const std::string path = absl::StrFormat("%s[%d]", model.PathOf("merges"), rank);
    ASSIGN_OR_RETURN(const MergeText merge, MergeOf((*merges)[rank], path));
    ASSIGN_OR_RETURN(const int32_t left, FindToken(ids, merge.left, path));
    ASSIGN_OR_RETURN(const int32_t right, FindToken(ids, merge.right, path));
    ASSIGN_OR_RETURN(const int32_t result,
                     FindToken(ids, absl::StrCat(merge.left, merge.right), path));
    pairs.Add(left, right, {static_cast<int32_t>(rank), result});
  }
  return pairs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PairModel>> PairModel::Create(const JsonFields& model,
                                                             const std::vector<std::string>& tokens,
                                                             bool gives_bytes) {
  TokenIds ids;
  ids.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    ids.emplace(tokens[i], static_cast<int32_t>(i));
  }
  ASSIGN_OR_RETURN(PairTable pairs, ReadMerges(model, ids));
  auto result = std::unique_ptr<PairModel>(new PairModel(gives_bytes, std::move(pairs)));
  RETURN_IF_ERROR(result->ReadOptions(model, ids));
  result->ReadTokens(tokens);
  return result;
}

absl::Status PairModel::ReadOptions(const JsonFields& model, const TokenIds& ids) {
  ASSIGN_OR_RETURN(ignores_merges_, model.Flag("ignore_merges", false));
  ASSIGN_OR_RETURN(falls_back_to_bytes_, model.Flag("byte_fallback", false));
  ASSIGN_OR_RETURN(fuses_unknown_, model.Flag("fuse_unk", false));
  ASSIGN_OR_RETURN(const std::optional<std::string> unknown, model.OptionalString("unk_token"));
  if (unknown.has_value()) {
    ASSIGN_OR_RETURN(unknown_id_, FindToken(ids, *unknown, model.PathOf("unk_token")));
  }
  const nlohmann::json* const dropout = model.Find("dropout");
  if (dropout != nullptr && !(dropout->is_number() && dropout->get<double>() == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(model.PathOf("dropout"), " is ", dropout->dump().substr(0, 60),
                     "; ids would be random: only null and 0 are supported"));
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    ASSIGN_OR_RETURN(const std::optional<std::string> affix, model.OptionalString(key));
    if (!affix.value_or("").empty()) {
      return absl::InvalidArgumentError(absl::StrCat(model.PathOf(key), " is ", Shown(*affix),
                                                     "; only null and \"\" are supported"));
    }
  }
  return absl::OkStatus();
}

void PairModel::ReadTokens(const std::vector<std::string>& tokens) {
  byte_ids_ = FindByteTokens(tokens);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (tokens[i].empty()) {
      continue;
    }
    const Utf8Unit first = FirstUtf8Unit(tokens[i]);
    if (first.bytes == tokens[i].size() && character_ids_.Find(first.code_point) < 0) {
      character_ids_.Set(first.code_point, id);
    }
    if (!ignores_merges_) {
      continue;
    }
    if (!gives_bytes_) {
      word_ids_.emplace(tokens[i], id);
      continue;
    }
    ByteLevelText word = DecodeByteLevel(tokens[i]);
    if (word.in_alphabet) {
      word_ids_.emplace(std::move(word.bytes), id);
    }
  }
}

void PairModel::FlushUnknown(Symbols* symbols) const {
  if (std::exchange(symbols->has_unknown, false)) {
    symbols->ids.push_back(*unknown_id_);
  }
}

// The order of the reference, in which bytes overtake an unknown token that waits for company.
void PairModel::AddCharacter(char32_t code_point, Symbols* symbols) const {
  const int32_t id = character_ids_.Find(code_point);
  if (id >= 0) {
    FlushUnknown(symbols);
    symbols->ids.push_back(id);
    return;
  }
  if (falls_back_to_bytes_) {
    std::string bytes;
    AppendUtf8(code_point, &bytes);
    const size_t before = symbols->ids.size();
    bool has_all = true;
    for (const char byte : bytes) {
      const int32_t byte_id = byte_ids_[static_cast<uint8_t>(byte)];
      has_all = has_all && byte_id >= 0;
      symbols->ids.push_back(byte_id);
    }
    if (has_all) {
      return;
    }
    symbols->ids.resize(before);
  }
  if (unknown_id_.has_value()) {
    if (!fuses_unknown_) {
      FlushUnknown(symbols);
    }
    symbols->has_unknown = true;
  }
}

absl::Status PairModel::Encode(const PieceList& list, std::vector<int32_t>* ids) const {
  SymbolMerger merger(&pairs_);
  Symbols symbols;
  for (const TextPiece& piece : list.pieces) {
    absl::string_view text =
        absl::string_view(list.text).substr(piece.begin, piece.end - piece.begin);
    if (!word_ids_.empty()) {
      const auto entry = word_ids_.find(text);
      if (entry != word_ids_.end()) {
        ids->push_back(entry->second);
        continue;
      }
    }
    symbols.ids.clear();
    if (gives_bytes_) {
      for (const char byte : text) {
        AddCharacter(CharacterOfByte(static_cast<uint8_t>(byte)), &symbols);
      }
    } else {
      for (size_t i = 0; i < text.size();) {
        const Utf8Character character = ValidUtf8At(text, i);
        AddCharacter(character.code_point, &symbols);
        i += character.bytes;
      }
    }
    FlushUnknown(&symbols);
    merger.Merge(&symbols.ids);
    ids->insert(ids->end(), symbols.ids.begin(), symbols.ids.end());
  }
  return absl::OkStatus();
}

}  // namespace trireme::text
