#include "runtime/text/piece_file.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"

namespace trireme::text {
namespace {

constexpr size_t kPiecesMax = size_t{1} << 24;
constexpr int32_t kNormalType = 1;
constexpr int32_t kLastType = 6;
constexpr size_t kUnknownTextBytesMax = 100;

// One field of a message; which of the values counts follows from the wire type.
struct Field {
  uint64_t number = 0;
  uint64_t value = 0;  // varint, or the bits of a fixed one
  absl::string_view bytes;
  bool is_bytes = false;
  bool is_fixed32 = false;
};

class WireReader {
 public:
  // `offset`: where the bytes begin in the file, for errors.
  WireReader(absl::string_view bytes, size_t offset) : bytes_(bytes), offset_(offset) {}

  bool AtEnd() const { return position_ == bytes_.size(); }
  size_t place() const { return offset_ + position_; }
  // Where the bytes of the field that was read last begin in the file.
  size_t BytesPlace(const Field& field) const { return place() - field.bytes.size(); }

  absl::StatusOr<Field> Next() {
    Field field;
    ASSIGN_OR_RETURN(const uint64_t key, Varint());
    field.number = key >> 3;
    if (field.number == 0) {
      return Error("a field of number 0");
    }
    switch (key & 7) {
      case 0: {
        ASSIGN_OR_RETURN(field.value, Varint());
        return field;
      }
      case 1: {
        ASSIGN_OR_RETURN(field.value, Fixed(8));
        return field;
      }
      case 2: {
        ASSIGN_OR_RETURN(const uint64_t size, Varint());
        if (size > bytes_.size() - position_) {
          return Error(absl::StrFormat("a field of %d bytes, of which %d are there", size,
                                       bytes_.size() - position_));
        }
        field.is_bytes = true;
        field.bytes = bytes_.substr(position_, size);
        position_ += size;
        return field;
      }
      case 5: {
        ASSIGN_OR_RETURN(field.value, Fixed(4));
        field.is_fixed32 = true;
        return field;
      }
      default:
        return Error("a field of an unknown wire type");
    }
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrFormat("is no SentencePiece model: %s at byte %d", what, place()));
  }
  absl::StatusOr<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (AtEnd()) {
        return Error("the end in the middle of a number");
      }
      const auto byte = static_cast<uint8_t>(bytes_[position_++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
    return Error("a number of over 64 bits");
  }
  absl::StatusOr<uint64_t> Fixed(size_t size) {
    if (bytes_.size() - position_ < size) {
      return Error("the end in the middle of a number");
    }
    uint64_t value = 0;
    for (size_t i = size; i > 0; --i) {
      value = value << 8 | static_cast<uint8_t>(bytes_[position_ + i - 1]);
    }
    position_ += size;
    return value;
  }

  const absl::string_view bytes_;
  const size_t offset_;
  size_t position_ = 0;
};

absl::Status Unsupported(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, ", which is not supported"));
}

absl::Status ForEachField(absl::string_view bytes, size_t offset,
                          absl::FunctionRef<absl::Status(const Field&, size_t place)> use) {
  WireReader reader(bytes, offset);
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const Field field, reader.Next());
    RETURN_IF_ERROR(use(field, reader.BytesPlace(field)));
  }
  return absl::OkStatus();
}

// SentencePiece {1: piece, 2: score, 3: type}
absl::Status ReadPiece(absl::string_view bytes, size_t offset, PieceFile* file) {
  const size_t id = file->pieces.size();
  if (id >= kPiecesMax) {
    return absl::InvalidArgumentError(absl::StrFormat("has over %d pieces", kPiecesMax));
  }
  std::string text;
  float score = 0;
  int64_t type = kNormalType;
  RETURN_IF_ERROR(ForEachField(bytes, offset, [&](const Field& field, size_t) {
    if (field.number == 1 && field.is_bytes) {
      text = std::string(field.bytes);
    } else if (field.number == 2 && field.is_fixed32) {
      const auto bits = static_cast<uint32_t>(field.value);
      std::memcpy(&score, &bits, sizeof(score));
    } else if (field.number == 3) {
      type = static_cast<int64_t>(field.value);
    }
    return absl::OkStatus();
  }));
  if (type < kNormalType || type > kLastType) {
    return absl::InvalidArgumentError(
        absl::StrFormat("piece %d has the type %d; known are 1 to 6", id, type));
  }
  if (!std::isfinite(score)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("piece %d has a score that is no number", id));
  }
  if (!IsValidUtf8(text)) {
    return absl::InvalidArgumentError(absl::StrFormat("piece %d, \"%s\", is not UTF-8", id,
                                                      absl::CHexEscape(text.substr(0, 60))));
  }
  file->pieces.push_back(std::move(text));
  file->scores.push_back(score);
  file->token_types.push_back(static_cast<int32_t>(type));
  return absl::OkStatus();
}

// A field of int32: negative numbers come as 64 bits.
int32_t SignedOf(const Field& field) {
  return static_cast<int32_t>(static_cast<int64_t>(field.value));
}

// TrainerSpec, of which most is about training.
absl::Status ReadTrainer(const Field& field, PieceFile* file) {
  switch (field.number) {
    case 3:
      if (field.value != 1 && field.value != 2) {
        return Unsupported(
            absl::StrFormat("the model type is %d (1 is Unigram, 2 is BPE)", field.value));
      }
      file->kind = static_cast<PieceFile::Kind>(field.value);
      break;
    case 24:
      if (field.value != 0) {
        return Unsupported("white space is a suffix of pieces (treat_whitespace_as_suffix)");
      }
      break;
    case 35:
      file->falls_back_to_bytes = field.value != 0;
      break;
    case 40:
      file->unknown_id = SignedOf(field);
      break;
    case 41:
      file->bos_id = SignedOf(field);
      break;
    case 42:
      file->eos_id = SignedOf(field);
      break;
    case 44:
      if (!IsValidUtf8(field.bytes) || field.bytes.size() > kUnknownTextBytesMax) {
        return absl::InvalidArgumentError("unk_surface is no short text");
      }
      file->unknown_text = std::string(field.bytes);
      break;
    default:
      break;
  }
  return absl::OkStatus();
}

absl::Status ReadNormalizerSpec(const Field& field, PieceFile* file) {
  switch (field.number) {
    case 2:
      file->precompiled_map = std::string(field.bytes);
      break;
    case 3:
      file->adds_prefix_space = field.value != 0;
      break;
    case 4:
      file->removes_extra_spaces = field.value != 0;
      break;
    case 5:
      if (field.value == 0) {
        return Unsupported("spaces stay as they are (escape_whitespaces is false)");
      }
      break;
    default:
      break;
  }
  return absl::OkStatus();
}

absl::Status CheckPieces(const PieceFile& file) {
  if (file.pieces.empty()) {
    return absl::InvalidArgumentError("is no SentencePiece model: it has no pieces");
  }
  absl::flat_hash_set<absl::string_view> known;
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    if (!known.insert(file.pieces[id]).second) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "piece %d, \"%s\", is there twice", id, absl::CHexEscape(file.pieces[id].substr(0, 60))));
    }
  }
  if (file.unknown_id < 0 || static_cast<size_t>(file.unknown_id) >= file.pieces.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "unk_id is %d; the model has the pieces 0 to %d", file.unknown_id, file.pieces.size() - 1));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PieceFile> ReadPieceFile(absl::string_view bytes) {
  PieceFile file;
  bool has_trainer = false;
  bool has_normalizer = false;
  RETURN_IF_ERROR(ForEachField(bytes, 0, [&](const Field& field, size_t place) {
    if (!field.is_bytes) {
      return absl::OkStatus();
    }
    has_trainer = has_trainer || field.number == 2;
    has_normalizer = has_normalizer || field.number == 3;
    switch (field.number) {
      case 1:
        return ReadPiece(field.bytes, place, &file);
      case 2:
        return ForEachField(field.bytes, place, [&file](const Field& inner, size_t) {
          return ReadTrainer(inner, &file);
        });
      case 3:
        return ForEachField(field.bytes, place, [&file](const Field& inner, size_t) {
          return ReadNormalizerSpec(inner, &file);
        });
      default:
        return absl::OkStatus();
    }
  }));
  RETURN_IF_ERROR(CheckPieces(file));
  // They come last, so a file that is cut between two pieces lacks them.
  if (!has_trainer || !has_normalizer) {
    return absl::InvalidArgumentError(
        "is no whole SentencePiece model: trainer_spec or normalizer_spec is missing");
  }
  return file;
}

}  // namespace trireme::text
