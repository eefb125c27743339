#include "runtime/text/piece_file_pipeline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/piece_model.h"

namespace trireme::text {
namespace {

constexpr float kUnknownPenalty = 10;
constexpr absl::string_view kSpaceMark = "\xe2\x96\x81";

}  // namespace

PieceFilePipeline::PieceFilePipeline(const PieceFile& file, const Vocabulary& vocabulary,
                                     PieceNormalizer normalizer)
    : vocabulary_(vocabulary),
      normalizer_(std::move(normalizer)),
      unknown_id_(file.unknown_id),
      unknown_text_(file.unknown_text),
      is_turn_marker_(file.pieces.size(), false),
      falls_back_to_bytes_(file.falls_back_to_bytes),
      byte_ids_(FindByteTokens(file.pieces)) {
  decode_rules_.leading_spaces =
      file.removes_extra_spaces ? std::numeric_limits<int32_t>::max() : file.adds_prefix_space;
  decode_rules_.shows_unknown = true;
  if (vocabulary.adds_bos()) {
    surrounding_tokens_.prefix_ids = {*vocabulary.bos_id()};
  }
  std::vector<AddedToken> controls;
  std::vector<AddedToken> users;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string& text = vocabulary.Text(id);
    const TokenType type = vocabulary.Type(id);
    if (type == TokenType::kControl) {
      controls.push_back({.content = text, .id = id, .is_special = true});
    } else if (type == TokenType::kUserDefined) {
      users.push_back({.content = text, .id = id});
      is_turn_marker_[static_cast<size_t>(id)] =
          CanMarkTurns(text) && absl::StrContains(vocabulary.data().chat_template, text);
      if (is_turn_marker_[static_cast<size_t>(id)]) {
        controls.push_back(users.back());
      }
    }
  }
  control_finder_ = std::make_unique<AddedTokenFinder>(std::move(controls));
  user_finder_ = std::make_unique<AddedTokenFinder>(std::move(users));
}

absl::StatusOr<std::unique_ptr<PieceFilePipeline>> PieceFilePipeline::Create(
    const PieceFile& file, const Vocabulary& vocabulary) {
  ASSIGN_OR_RETURN(PieceNormalizer normalizer, PieceNormalizer::Create(file));
  auto pipeline = std::unique_ptr<PieceFilePipeline>(
      new PieceFilePipeline(file, vocabulary, std::move(normalizer)));
  const bool has_all_bytes = std::all_of(pipeline->byte_ids_.begin(), pipeline->byte_ids_.end(),
                                         [](int32_t id) { return id >= 0; });
  if (file.falls_back_to_bytes && !has_all_bytes) {
    return absl::InvalidArgumentError(
        "has byte fallback, but not all of the byte pieces <0x00> to <0xFF>");
  }
  if (file.kind == PieceFile::Kind::kUnigram) {
    RETURN_IF_ERROR(pipeline->MakeUnigram(file));
    return pipeline;
  }
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.Type(id) == TokenType::kUnused) {
      return absl::InvalidArgumentError(
          absl::StrFormat("piece %d is of type unused, which is not supported in a BPE model", id));
    }
  }
  ASSIGN_OR_RETURN(pipeline->pairs_, SentencePieceEncoder::Create(vocabulary));
  return pipeline;
}

absl::Status PieceFilePipeline::MakeUnigram(const PieceFile& file) {
  float lowest = std::numeric_limits<float>::max();
  for (size_t i = 0; i < file.pieces.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const std::string& text = file.pieces[i];
    if (text.size() > UnigramTrie<float>::kTokenBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrFormat("piece %d has %d bytes; at most %d are supported", id, text.size(),
                          UnigramTrie<float>::kTokenBytesMax));
    }
    // User-defined pieces are cut out before.
    if (vocabulary_.Type(id) == TokenType::kNormal) {
      lowest = std::min(lowest, file.scores[i]);
      if (!text.empty()) {
        trie_.Add(text, id, file.scores[i]);
      }
    }
  }
  unknown_score_ = lowest - kUnknownPenalty;
  return absl::OkStatus();
}

absl::Status PieceFilePipeline::Encode(absl::string_view text, absl::Span<const TextSource> sources,
                                       std::vector<int32_t>* ids) const {
  const std::vector<SpecialTokenMatch> controls =
      control_finder_->Find(text, [sources](const AddedToken&, size_t begin, size_t end) {
        return LeastTrust(sources, begin, end) == Trust::kTemplate ? AddedTokenVerdict::kMatch
                                                                   : AddedTokenVerdict::kAbsent;
      });
  size_t done = 0;
  for (const SpecialTokenMatch& match : controls) {
    RETURN_IF_ERROR(
        EncodeBetweenControls(text.substr(done, match.begin - done), done, sources, ids));
    ids->push_back(match.id);
    done = match.end;
  }
  return EncodeBetweenControls(text.substr(done), done, sources, ids);
}

// User-defined pieces are found twice: in the raw text, where they keep their spelling, and in the
// normalized one.
absl::Status PieceFilePipeline::EncodeBetweenControls(absl::string_view text, size_t begin,
                                                      absl::Span<const TextSource> sources,
                                                      std::vector<int32_t>* ids) const {
  if (text.empty()) {
    return absl::OkStatus();
  }
  const bool has_user = LeastTrust(sources, begin, begin + text.size()) == Trust::kUser;
  const auto judge = [this, has_user](const AddedToken& token, size_t, size_t) {
    return has_user && is_turn_marker_[static_cast<size_t>(token.id)] ? AddedTokenVerdict::kAbsent
                                                                      : AddedTokenVerdict::kMatch;
  };
  const std::string normalized = normalizer_.Normalize(text, user_finder_->Find(text, judge));
  const std::vector<SpecialTokenMatch> matches = user_finder_->Find(normalized, judge);
  size_t done = 0;
  for (const SpecialTokenMatch& match : matches) {
    RETURN_IF_ERROR(
        EncodeNormalized(absl::string_view(normalized).substr(done, match.begin - done), ids));
    ids->push_back(match.id);
    done = match.end;
  }
  return EncodeNormalized(absl::string_view(normalized).substr(done), ids);
}

absl::Status PieceFilePipeline::EncodeNormalized(absl::string_view text,
                                                 std::vector<int32_t>* ids) const {
  if (text.empty()) {
    return absl::OkStatus();
  }
  const size_t before = ids->size();
  if (pairs_ != nullptr) {
    EncodedWords words;  // of this stretch alone: ids are taken away below
    RETURN_IF_ERROR(pairs_->Encode(text, &words, ids));
  } else {
    RETURN_IF_ERROR(EncodeUnigram(text, ids));
  }
  // A run of unknown characters is one unknown piece.
  const auto is_run = [this](int32_t a, int32_t b) { return a == unknown_id_ && b == unknown_id_; };
  ids->erase(std::unique(ids->begin() + static_cast<std::ptrdiff_t>(before), ids->end(), is_run),
             ids->end());
  return absl::OkStatus();
}

absl::Status PieceFilePipeline::EncodeUnigram(absl::string_view text,
                                              std::vector<int32_t>* ids) const {
  for (const auto& part : trie_.Cut(text, unknown_score_)) {
    if (part.id >= 0) {
      ids->push_back(part.id);
    } else if (falls_back_to_bytes_) {
      for (const char byte : text.substr(part.begin, part.end - part.begin)) {
        ids->push_back(byte_ids_[static_cast<uint8_t>(byte)]);
      }
    } else {
      ids->push_back(unknown_id_);
    }
  }
  return absl::OkStatus();
}

std::string PieceFilePipeline::BytesOf(int32_t id, bool /*is_first*/) const {
  const std::string& text = vocabulary_.Text(id);
  switch (vocabulary_.Type(id)) {
    case TokenType::kControl:
      return text;
    case TokenType::kUnknown:
      return unknown_text_;
    case TokenType::kByte: {
      const int byte = ByteOfToken(text);
      return byte < 0 ? text : std::string(1, static_cast<char>(byte));
    }
    default:
      return absl::StrReplaceAll(text, {{kSpaceMark, " "}});
  }
}

}  // namespace trireme::text
