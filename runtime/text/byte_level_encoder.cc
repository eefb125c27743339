#include "runtime/text/byte_level_encoder.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/log.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/byte_level.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

struct TokenPair {
  int32_t left;
  int32_t right;
  int32_t result;
};

// Every way to cut a token into two.
PairTable PairsOfTokens(const Vocabulary& vocabulary) {
  std::vector<TokenPair> all;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const absl::string_view text = vocabulary.Text(id);
    if (vocabulary.FindOrdinary(text) != id || text.empty()) {
      continue;
    }
    for (size_t cut = FirstUtf8Unit(text).bytes; cut < text.size();
         cut += FirstUtf8Unit(text.substr(cut)).bytes) {
      const int32_t left = vocabulary.FindOrdinary(text.substr(0, cut));
      const int32_t right = left < 0 ? -1 : vocabulary.FindOrdinary(text.substr(cut));
      if (right >= 0) {
        all.push_back({left, right, id});
      }
    }
  }
  PairTable pairs(all.size());
  for (const TokenPair& pair : all) {
    pairs.Add(pair.left, pair.right, {pair.result, pair.result});
  }
  return pairs;
}

absl::StatusOr<PairTable> ReadMerges(const Vocabulary& vocabulary) {
  if (vocabulary.data().merges_by_id) {
    return PairsOfTokens(vocabulary);
  }
  if (!vocabulary.data().merges.has_value()) {
    return absl::InvalidArgumentError(
        "tokenizer.ggml.merges is missing; a gpt2 tokenizer cannot work without it");
  }
  const std::vector<std::string>& merges = *vocabulary.data().merges;
  PairTable pairs(merges.size());
  size_t left_out = 0;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const absl::string_view merge = merges[rank];
    const size_t space = merge.find(' ', 1);
    if (space == absl::string_view::npos) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "tokenizer.ggml.merges: merge %d is \"%s\"; it needs two parts with a space between them",
          rank, absl::CHexEscape(merge.substr(0, 60))));
    }
    const absl::string_view left = merge.substr(0, space);
    const absl::string_view right = merge.substr(space + 1);
    const int32_t left_id = vocabulary.FindOrdinary(left);
    const int32_t right_id = vocabulary.FindOrdinary(right);
    const int32_t result = vocabulary.FindOrdinary(absl::StrCat(left, right));
    if (left_id < 0 || right_id < 0 || result < 0) {
      ++left_out;
      continue;
    }
    pairs.Add(left_id, right_id, {static_cast<int32_t>(rank), result});
  }
  if (left_out > 0) {
    Log(LogLevel::kWarning,
        absl::StrFormat(
            "tokenizer.ggml.merges: left out %d of %d merges, whose parts or result are not "
            "ordinary tokens of the vocabulary",
            left_out, merges.size()));
  }
  return pairs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ByteLevelEncoder>> ByteLevelEncoder::Create(
    const Vocabulary& vocabulary, const PreTokenizerFamily& family) {
  ASSIGN_OR_RETURN(PairTable pairs, ReadMerges(vocabulary));
  ASSIGN_OR_RETURN(PreTokenizerSteps steps, PreTokenizerSteps::CreateFromPatterns(family.patterns));
  const bool ignores_merges = vocabulary.data().ignore_merges.value_or(family.traits.ignore_merges);
  return std::unique_ptr<ByteLevelEncoder>(
      new ByteLevelEncoder(vocabulary, std::move(steps), std::move(pairs), ignores_merges));
}

ByteLevelEncoder::ByteLevelEncoder(const Vocabulary& vocabulary, PreTokenizerSteps steps,
                                   PairTable pairs, bool ignores_merges)
    : vocabulary_(vocabulary), steps_(std::move(steps)), pairs_(std::move(pairs)) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string character;
    AppendUtf8(CharacterOfByte(static_cast<uint8_t>(byte)), &character);
    byte_ids_[static_cast<size_t>(byte)] = vocabulary.FindOrdinary(character);
  }
  if (!ignores_merges) {
    return;
  }
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    ByteLevelText word = DecodeByteLevel(vocabulary.Text(id));
    if (word.in_alphabet && vocabulary.FindOrdinary(vocabulary.Text(id)) == id) {
      word_ids_.emplace(std::move(word.bytes), id);
    }
  }
}

// Keeps no words: most are short, and merging one takes as long as looking it up.
absl::Status ByteLevelEncoder::Encode(absl::string_view text, EncodedWords* /*words*/,
                                      std::vector<int32_t>* ids) const {
  PieceList whole = {.text = std::string(text),
                     .pieces = {{0, static_cast<uint32_t>(text.size())}}};
  SymbolMerger merger(&pairs_);
  std::vector<int32_t> symbols;
  return steps_.Apply(std::move(whole), [&](const PieceList& list) {
    for (const TextPiece& piece : list.pieces) {
      EncodeWord(text.substr(piece.begin, piece.end - piece.begin), &merger, &symbols, ids);
    }
    return absl::OkStatus();
  });
}

void ByteLevelEncoder::EncodeWord(absl::string_view word, SymbolMerger* merger,
                                  std::vector<int32_t>* symbols, std::vector<int32_t>* ids) const {
  if (!word_ids_.empty()) {
    const auto entry = word_ids_.find(word);
    if (entry != word_ids_.end()) {
      ids->push_back(entry->second);
      return;
    }
  }
  symbols->clear();
  for (const char byte : word) {
    symbols->push_back(byte_ids_[static_cast<uint8_t>(byte)]);
  }
  merger->Merge(symbols);
  for (const int32_t symbol : *symbols) {
    if (symbol >= 0) {
      ids->push_back(symbol);
    }
  }
}

std::string ByteLevelEncoder::BytesOf(int32_t id) const {
  return DecodeByteLevel(vocabulary_.Text(id)).bytes;
}

}  // namespace trireme::text
