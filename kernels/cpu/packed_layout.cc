#include "kernels/cpu/packed_layout.h"

#include <algorithm>
#include <cstring>

#include "kernels/formats/all_formats.h"
#include "kernels/formats/group_scales.h"

namespace trireme::kernels::cpu {
namespace {

constexpr int kGroupWords = 8;  // a group's codes, four to a word

int64_t PanelCount(const SliceShape& shape) { return (shape.rows + kPanelRows - 1) / kPanelRows; }

template <typename Block>
int64_t PanelBytes(const SliceShape& shape) {
  if constexpr (HasGroups(InfoOf(Block::kFormat))) {
    return GroupedPanelBytes(Block::kTraits, shape.columns, shape.first_column);
  } else if constexpr (Block::kFormat == WeightFormat::kBF16) {
    return PairPanelBytes(shape.columns);
  } else {
    return FloatPanelBytes(shape.columns, sizeof(Block));
  }
}

// Where column k of a row lies in a panel without groups, in values.
template <typename Block>
int64_t PlaceOf(int64_t k, int lane) {
  if constexpr (Block::kFormat == WeightFormat::kBF16) {
    return (k / 2 * kPanelRows + lane) * 2 + k % 2;
  } else {
    return k * kPanelRows + lane;
  }
}

uint32_t* WordOf(std::byte* codes, int vector, int lane) {
  return reinterpret_cast<uint32_t*>(codes + vector * kVectorBytes + lane * 4);
}
uint32_t LoadWord(const std::byte* codes, int vector, int lane) {
  uint32_t word;
  std::memcpy(&word, codes + vector * kVectorBytes + lane * 4, sizeof(word));
  return word;
}

// Planes of one bit of all columns, or of two, of 16 columns in each vector: bits `bit` (and bit +
// 1) of each code.
void WriteBits(const uint32_t (&words)[kGroupWords], int bit, int vector, std::byte* codes,
               int lane) {
  uint32_t plane = 0;
  for (int v = 0; v < kGroupWords; ++v) {
    plane |= (words[v] >> bit & 0x01010101U) << v;
  }
  *WordOf(codes, vector, lane) = plane;
}
void WritePairs(const uint32_t (&words)[kGroupWords], int bit, const int (&vectors)[2],
                std::byte* codes, int lane) {
  for (int p = 0; p < 2; ++p) {
    uint32_t plane = 0;
    for (int u = 0; u < 4; ++u) {
      plane |= (words[4 * p + u] >> bit & 0x03030303U) << (2 * u);
    }
    *WordOf(codes, vectors[p], lane) = plane;
  }
}
uint32_t ReadBits(const std::byte* codes, int vector, int word, int lane) {
  return LoadWord(codes, vector, lane) >> word & 0x01010101U;
}
uint32_t ReadPairs(const std::byte* codes, const int (&vectors)[2], int word, int lane) {
  return LoadWord(codes, vectors[word / 4], lane) >> (2 * (word % 4)) & 0x03030303U;
}

template <int kCodeBits>
constexpr int kLowPairsVector[2] = {kLowPartVector<kCodeBits>, kLowPartVector<kCodeBits> + 1};

// Codes of one row of one group <-> words v = columns 4 v .. 4 v + 3.
template <GroupTraits kTraits>
void WriteCodes(const uint32_t (&words)[kGroupWords], std::byte* codes, int lane) {
  constexpr int kCodeBits = kTraits.code_bits;
  if constexpr (kCodeBits == 8 && !HasIntegers(kTraits)) {
    const auto* bytes = reinterpret_cast<const std::byte*>(words);
    for (int i = 0; i < kGroupValues; ++i) {
      codes[i * kPanelRows + lane] = bytes[i];
    }
  } else if constexpr (kCodeBits == 8) {
    for (int v = 0; v < kGroupWords; ++v) {
      *WordOf(codes, v, lane) = words[v];
    }
  } else if constexpr (kCodeBits >= 4) {
    constexpr uint32_t kLow = 0x0F0F0F0FU;
    for (int v = 0; v < 4; ++v) {
      *WordOf(codes, kLowPartVector<kCodeBits> + v, lane) =
          (words[v] & kLow) | (words[v + 4] & kLow) << 4;
    }
  } else {
    WritePairs(words, 0, kLowPairsVector<kCodeBits>, codes, lane);
  }
  if constexpr (kCodeBits == 3) {
    WriteBits(words, 2, 0, codes, lane);
  } else if constexpr (kCodeBits == 5) {
    WriteBits(words, 4, 0, codes, lane);
  } else if constexpr (kCodeBits == 6) {
    WritePairs(words, 4, kHighPairsVector, codes, lane);
  }
}

template <GroupTraits kTraits>
void ReadCodes(const std::byte* codes, int lane, uint32_t (&words)[kGroupWords]) {
  constexpr int kCodeBits = kTraits.code_bits;
  if constexpr (kCodeBits == 8 && !HasIntegers(kTraits)) {
    auto* bytes = reinterpret_cast<std::byte*>(words);
    for (int i = 0; i < kGroupValues; ++i) {
      bytes[i] = codes[i * kPanelRows + lane];
    }
    return;
  }
  for (int v = 0; v < kGroupWords; ++v) {
    if constexpr (kCodeBits == 8) {
      words[v] = LoadWord(codes, v, lane);
    } else if constexpr (kCodeBits >= 4) {
      words[v] =
          LoadWord(codes, kLowPartVector<kCodeBits> + v % 4, lane) >> (v < 4 ? 0 : 4) & 0x0F0F0F0FU;
    } else {
      words[v] = ReadPairs(codes, kLowPairsVector<kCodeBits>, v, lane);
    }
    if constexpr (kCodeBits == 3) {
      words[v] |= ReadBits(codes, 0, v, lane) << 2;
    } else if constexpr (kCodeBits == 5) {
      words[v] |= ReadBits(codes, 0, v, lane) << 4;
    } else if constexpr (kCodeBits == 6) {
      words[v] |= ReadPairs(codes, kHighPairsVector, v, lane) << 4;
    }
  }
}

void StoreHalfBits(std::byte* target, int lane, uint16_t bits) {
  std::memcpy(target + lane * 2, &bits, sizeof(bits));
}
uint16_t LoadHalfBits(const std::byte* source, int lane) {
  uint16_t bits;
  std::memcpy(&bits, source + lane * 2, sizeof(bits));
  return bits;
}

// The scale fields of one row of a group: where they lie, written and read as a WeightGroup's.
template <GroupTraits kTraits>
void WriteScales(const WeightGroup& group, std::byte* group_scales, std::byte* piece_scales,
                 int lane) {
  for (int i = 0; i < FactorBytes(kTraits); ++i) {
    group_scales[i * kPanelRows + lane] = std::byte{group.factors[i]};
  }
  if constexpr (HasFloatScale(kTraits)) {
    std::memcpy(piece_scales + lane * 4, &group.scale, sizeof(group.scale));
  } else if constexpr (HasSuperblocks(kTraits) || kTraits.scales == ScaleKind::kGroupHalf) {
    std::byte* halves = HasSuperblocks(kTraits) ? piece_scales : group_scales;
    StoreHalfBits(halves, lane, group.scale_bits);
    if constexpr (kTraits.has_minimum) {
      StoreHalfBits(halves + kPanelRows * 2, lane, group.minimum_bits);
    }
  }
}

template <GroupTraits kTraits>
void ReadScales(const std::byte* group_scales, const std::byte* piece_scales, int lane,
                WeightGroup* group) {
  for (int i = 0; i < FactorBytes(kTraits); ++i) {
    group->factors[i] = static_cast<uint8_t>(group_scales[i * kPanelRows + lane]);
  }
  if constexpr (HasFloatScale(kTraits)) {
    std::memcpy(&group->scale, piece_scales + lane * 4, sizeof(group->scale));
  } else if constexpr (HasSuperblocks(kTraits) || kTraits.scales == ScaleKind::kGroupHalf) {
    const std::byte* halves = HasSuperblocks(kTraits) ? piece_scales : group_scales;
    group->scale_bits = LoadHalfBits(halves, lane);
    if constexpr (kTraits.has_minimum) {
      group->minimum_bits = LoadHalfBits(halves + kPanelRows * 2, lane);
    }
  }
}

// Calls body(first_group, groups, piece_offset) for each piece of a panel.
template <typename Block, typename Body>
void ForEachPiece(const SliceShape& shape, const Body& body) {
  const int64_t groups = shape.columns / kGroupValues;
  const int64_t phase = PhaseOf(Block::kTraits, shape.first_column);
  int64_t offset = 0;
  for (int64_t done = 0; done < groups;) {
    const int64_t piece_groups = GroupsOfPiece(Block::kTraits, groups, phase, done);
    body(done, piece_groups, offset);
    offset += PieceSize(PieceBytesOf(Block::kTraits), piece_groups);
    done += piece_groups;
  }
}

// Packs the rows of one panel. Each row writes four bytes into every vector of the panel, so all
// rows take their turn at kStripGroups groups, which stay in L1 meanwhile, and a block is copied
// once for all of its groups.
constexpr int64_t kStripGroups = 8;

template <typename Block>
void PackGroupedPanel(const PackArgs& args, const std::byte* source, int rows, std::byte* panel) {
  constexpr PieceBytes kBytes = PieceBytesOf(Block::kTraits);
  constexpr int64_t kBlockGroups = InfoOf(Block::kFormat).storage_values / kGroupValues;
  static_assert(kStripGroups % kBlockGroups == 0);
  const int64_t first_stored = args.shape.first_column / kGroupValues;
  ForEachPiece<Block>(args.shape, [&](int64_t first_group, int64_t groups, int64_t offset) {
    std::byte* piece = panel + offset;
    const int64_t stored = first_stored + first_group;  // of the piece's group 0
    for (int64_t strip = 0, end = 0; strip < groups; strip = end) {
      end = std::min(groups, strip + kStripGroups - (stored + strip) % kStripGroups);
      for (int lane = 0; lane < rows; ++lane) {
        const std::byte* row = source + lane * args.source_row_bytes;
        Block block;
        for (int64_t g = strip; g < end; ++g) {
          const int64_t number = stored + g;
          if (g == strip || number % kBlockGroups == 0) {
            std::memcpy(&block, row + number / kBlockGroups * static_cast<int64_t>(sizeof(Block)),
                        sizeof(Block));
          }
          const WeightGroup group = block.Group(static_cast<int>(number % kBlockGroups));
          uint32_t words[kGroupWords];
          static_assert(sizeof(words) == sizeof(group.codes));
          std::memcpy(words, group.codes, sizeof(words));
          WriteCodes<Block::kTraits>(words, piece + CodesOffset(kBytes, g), lane);
          WriteScales<Block::kTraits>(group, piece + ScalesOffset(kBytes, g), piece, lane);
        }
      }
    }
  });
}

template <typename Block>
void PackFloatRow(const SliceShape& shape, const std::byte* source, std::byte* panel, int lane) {
  constexpr int64_t kBytes = sizeof(Block);
  constexpr int64_t kRun = Block::kFormat == WeightFormat::kBF16 ? 2 : 1;  // columns side by side
  const std::byte* first = source + shape.first_column * kBytes;
  int64_t k = 0;
  for (; k + kRun <= shape.columns; k += kRun) {
    std::memcpy(panel + PlaceOf<Block>(k, lane) * kBytes, first + k * kBytes, kRun * kBytes);
  }
  if (k < shape.columns) {
    std::memcpy(panel + PlaceOf<Block>(k, lane) * kBytes, first + k * kBytes, kBytes);
  }
}

template <typename Block>
void DecodeGroupedRow(const SliceShape& shape, const std::byte* panel, int lane, float* values) {
  constexpr GroupTraits kTraits = Block::kTraits;
  constexpr PieceBytes kBytes = PieceBytesOf(kTraits);
  ForEachPiece<Block>(shape, [&](int64_t first_group, int64_t groups, int64_t offset) {
    const std::byte* piece = panel + offset;
    for (int64_t g = 0; g < groups; ++g) {
      uint32_t words[kGroupWords];
      ReadCodes<kTraits>(piece + CodesOffset(kBytes, g), lane, words);
      WeightGroup group;
      std::memcpy(group.codes, words, sizeof(words));
      ReadScales<kTraits>(piece + ScalesOffset(kBytes, g), piece, lane, &group);
      const GroupScales scales = ScalesOf(kTraits, group);
      float* target = values + (first_group + g) * kGroupValues;
      for (int i = 0; i < kGroupValues; ++i) {
        const int half = i / (kGroupValues / 2);
        const float value =
            CodeNumber(kTraits, group.codes[i]) * (scales.scale * scales.half_factors[half]);
        target[i] = kTraits.has_minimum ? value + scales.minima[half] : value;
      }
    }
  });
}

template <typename Block>
void DecodeFloatRow(const SliceShape& shape, const std::byte* panel, int lane, float* values) {
  constexpr int64_t kBytes = sizeof(Block);
  for (int64_t k = 0; k < shape.columns; ++k) {
    Block block;
    std::memcpy(&block, panel + PlaceOf<Block>(k, lane) * kBytes, sizeof(Block));
    values[k] = block.Value(0);
  }
}

}  // namespace

int64_t PackedBytes(const SliceShape& shape) {
  return VisitFormat(shape.format, [&](auto block) {
    return PanelCount(shape) * PanelBytes<decltype(block)>(shape);
  });
}

void Pack(const PackArgs& args) {
  VisitFormat(args.shape.format, [&](auto block) {
    using Block = decltype(block);
    const int64_t panel_bytes = PanelBytes<Block>(args.shape);
    for (int64_t first_row = 0; first_row < args.shape.rows; first_row += kPanelRows) {
      const int rows = static_cast<int>(std::min<int64_t>(kPanelRows, args.shape.rows - first_row));
      std::byte* panel = args.packed + first_row / kPanelRows * panel_bytes;
      const std::byte* source = args.source + first_row * args.source_row_bytes;
      std::memset(panel, 0, static_cast<size_t>(panel_bytes));
      if constexpr (HasGroups(InfoOf(Block::kFormat))) {
        PackGroupedPanel<Block>(args, source, rows, panel);
      } else {
        for (int lane = 0; lane < rows; ++lane) {
          PackFloatRow<Block>(args.shape, source + lane * args.source_row_bytes, panel, lane);
        }
      }
    }
  });
}

void DecodePackedRow(const SliceShape& shape, const std::byte* data, int64_t row, float* values) {
  VisitFormat(shape.format, [&](auto block) {
    using Block = decltype(block);
    const std::byte* panel = data + row / kPanelRows * PanelBytes<Block>(shape);
    const int lane = static_cast<int>(row % kPanelRows);
    if constexpr (HasGroups(InfoOf(Block::kFormat))) {
      DecodeGroupedRow<Block>(shape, panel, lane, values);
    } else {
      DecodeFloatRow<Block>(shape, panel, lane, values);
    }
  });
}

void Embedding(const Execution& execution, const EmbeddingArgs& args) {
  constexpr int64_t kTaskTokens = 8;
  const SliceShape& shape = args.table.shape;
  const int64_t tasks = (args.tokens + kTaskTokens - 1) / kTaskTokens;
  execution.pool->ParallelFor(tasks, [&](int64_t task_index, int /*worker_index*/) {
    const int64_t end = std::min(args.tokens, (task_index + 1) * kTaskTokens);
    for (int64_t token = task_index * kTaskTokens; token < end; ++token) {
      const int64_t row = args.token_ids[token] - args.first_row;
      float* values = args.y + token * shape.columns;
      if (row >= 0 && row < shape.rows) {
        DecodePackedRow(shape, args.table.data, row, values);
      } else {
        std::fill_n(values, shape.columns, -0.0F);
      }
    }
  });
}

}  // namespace trireme::kernels::cpu
