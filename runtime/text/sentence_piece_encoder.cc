#include "runtime/text/sentence_piece_encoder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/piece_model.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

constexpr char32_t kSpaceMark = 0x2581;
constexpr absl::string_view kSpaceMarkText = "\xe2\x96\x81";

// A merged token is looked at once per way to cut it in two, so a huge one in a hostile file would
// cost the square of its length. The longest in published files has 93 bytes.
constexpr size_t kLongestTokenBytes = 512;

// Of a text that is not empty.
char32_t LastCodePoint(absl::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) {
    --begin;
  }
  return FirstUtf8Unit(text.substr(begin)).code_point;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SentencePieceEncoder>> SentencePieceEncoder::Create(
    const Vocabulary& vocabulary) {
  if (vocabulary.data().scores.empty()) {
    return absl::InvalidArgumentError(
        "tokenizer.ggml.scores is missing; a llama tokenizer cannot work without it");
  }
  auto encoder = std::unique_ptr<SentencePieceEncoder>(new SentencePieceEncoder(vocabulary));
  RETURN_IF_ERROR(encoder->ReadByteTokens());
  RETURN_IF_ERROR(encoder->MakePairs());
  return encoder;
}

SentencePieceEncoder::SentencePieceEncoder(const Vocabulary& vocabulary)
    : vocabulary_(vocabulary),
      adds_space_prefix_(vocabulary.data().add_space_prefix.value_or(true)) {
  byte_ids_.fill(-1);
}

absl::Status SentencePieceEncoder::ReadByteTokens() {
  for (int32_t id = 0; id < vocabulary_.size(); ++id) {
    if (vocabulary_.Type(id) != TokenType::kByte) {
      continue;
    }
    const int byte = ByteOfToken(vocabulary_.Text(id));
    if (byte < 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tokenizer.ggml.tokens: token %d has type byte and the text \"%s\"; byte "
                          "tokens are spelled <0x00> "
                          "to <0xFF>",
                          id, absl::CHexEscape(vocabulary_.Text(id).substr(0, 60))));
    }
    byte_ids_[static_cast<size_t>(byte)] = id;
  }
  return absl::OkStatus();
}

absl::Status SentencePieceEncoder::MakePairs() {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < vocabulary_.size(); ++id) {
    const std::string& text = vocabulary_.Text(id);
    if (vocabulary_.FindOrdinary(text) != id || text.empty()) {
      continue;
    }
    if (text.size() > kLongestTokenBytes) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tokenizer.ggml.tokens: token %d has %d bytes; at most %d are supported",
                          id, text.size(), kLongestTokenBytes));
    }
    const Utf8Unit first = FirstUtf8Unit(text);
    if (first.bytes == text.size()) {
      symbols_.Set(first.code_point, id);
    }
    ids.push_back(id);
  }
  const std::vector<float>& scores = vocabulary_.data().scores;
  std::stable_sort(ids.begin(), ids.end(), [&scores](int32_t a, int32_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  // Equal scores give equal ranks, so that the leftmost of them merges first.
  int32_t rank = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0 && scores[static_cast<size_t>(ids[i])] < scores[static_cast<size_t>(ids[i - 1])]) {
      ++rank;
    }
    // A user-defined token is found before anything merges. Where it may not be, because a user
    // wrote it, it must not come about by merging either.
    if (vocabulary_.Type(ids[i]) != TokenType::kUserDefined) {
      AddPairsOf(ids[i], rank);
    }
  }
  pairs_ = std::make_unique<PairTable>(found_pairs_.size());
  for (const PairOfToken& pair : found_pairs_) {
    pairs_->Add(pair.left, pair.right, pair.merge);
  }
  found_pairs_ = {};
  return absl::OkStatus();
}

void SentencePieceEncoder::AddPairsOf(int32_t id, int32_t rank) {
  const absl::string_view text = vocabulary_.Text(id);
  for (size_t cut = FirstUtf8Unit(text).bytes; cut < text.size();
       cut += FirstUtf8Unit(text.substr(cut)).bytes) {
    const int32_t left = SymbolOfText(text.substr(0, cut));
    if (left < 0) {
      continue;
    }
    const int32_t right = SymbolOfText(text.substr(cut));
    if (right < 0) {
      continue;
    }
    found_pairs_.push_back({left, right, {rank, id}});
    if (absl::StartsWith(text.substr(cut), kSpaceMarkText)) {
      joined_to_space_.insert(LastCodePoint(text.substr(0, cut)));
    }
  }
}

int32_t SentencePieceEncoder::SymbolOfText(absl::string_view text) {
  const Utf8Unit first = FirstUtf8Unit(text);
  if (first.bytes != text.size()) {
    return vocabulary_.FindOrdinary(text);
  }
  if (symbols_.Find(first.code_point) < 0) {
    symbols_.Set(first.code_point,
                 vocabulary_.size() + static_cast<int32_t>(extra_characters_.size()));
    extra_characters_.push_back(first.code_point);
  }
  return symbols_.Find(first.code_point);
}

int32_t SentencePieceEncoder::SymbolOf(char32_t code_point) const {
  const int32_t symbol = symbols_.Find(code_point);
  return symbol < 0 ? -1 - static_cast<int32_t>(code_point) : symbol;
}

// Behind the word of `text` that begins at `begin`.
size_t SentencePieceEncoder::EndOfWord(absl::string_view text, size_t begin) const {
  size_t space = text.find(' ', begin + 1);
  while (space != absl::string_view::npos) {
    const char32_t before = LastCodePoint(text.substr(0, space));
    if (!joined_to_space_.contains(before == ' ' ? kSpaceMark : before)) {
      return space;
    }
    space = text.find(' ', space + 1);
  }
  return text.size();
}

absl::Status SentencePieceEncoder::Encode(absl::string_view text, EncodedWords* words,
                                          std::vector<int32_t>* ids) const {
  SymbolMerger merger(pairs_.get());
  std::vector<int32_t> symbols;
  if (adds_space_prefix_) {
    symbols.push_back(SymbolOf(kSpaceMark));
  }
  size_t end = 0;
  for (size_t begin = 0; begin < text.size() || !symbols.empty(); begin = end) {
    end = EndOfWord(text, begin);
    const absl::string_view word = text.substr(begin, end - begin);
    const bool has_prefix = !symbols.empty();
    if (!has_prefix && words->Append(word, ids)) {
      continue;
    }
    for (size_t i = 0; i < word.size();) {
      const Utf8Character character = ValidUtf8At(word, i);
      symbols.push_back(SymbolOf(character.code_point == ' ' ? kSpaceMark : character.code_point));
      i += character.bytes;
    }
    merger.Merge(&symbols);
    const size_t first = ids->size();
    RETURN_IF_ERROR(AppendTokens(symbols, ids));
    symbols.clear();
    if (!has_prefix) {
      words->Keep(word, first, *ids);
    }
  }
  return absl::OkStatus();
}

absl::Status SentencePieceEncoder::AppendTokens(const std::vector<int32_t>& symbols,
                                                std::vector<int32_t>* ids) const {
  for (const int32_t symbol : symbols) {
    if (symbol >= 0 && symbol < vocabulary_.size()) {
      ids->push_back(symbol);
      continue;
    }
    const char32_t character =
        symbol < 0 ? static_cast<char32_t>(-1 - symbol)
                   : extra_characters_[static_cast<size_t>(symbol - vocabulary_.size())];
    RETURN_IF_ERROR(AppendCharacter(character, ids));
  }
  return absl::OkStatus();
}

absl::Status SentencePieceEncoder::AppendCharacter(char32_t code_point,
                                                   std::vector<int32_t>* ids) const {
  std::string bytes;
  AppendUtf8(code_point, &bytes);
  const bool all_bytes = std::all_of(bytes.begin(), bytes.end(), [this](char byte) {
    return byte_ids_[static_cast<uint8_t>(byte)] >= 0;
  });
  if (all_bytes) {
    for (const char byte : bytes) {
      ids->push_back(byte_ids_[static_cast<uint8_t>(byte)]);
    }
    return absl::OkStatus();
  }
  if (!vocabulary_.unknown_id().has_value()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the text has the character U+%04X, for which this vocabulary has neither "
                        "a token, nor byte "
                        "tokens, nor an unknown token",
                        static_cast<uint32_t>(code_point)));
  }
  ids->push_back(*vocabulary_.unknown_id());
  return absl::OkStatus();
}

std::string SentencePieceEncoder::BytesOf(int32_t id) const {
  const std::string& text = vocabulary_.Text(id);
  if (vocabulary_.Type(id) == TokenType::kByte) {
    return std::string(1, static_cast<char>(ByteOfToken(text)));
  }
  return absl::StrReplaceAll(text, {{kSpaceMarkText, " "}});
}

}  // namespace trireme::text
