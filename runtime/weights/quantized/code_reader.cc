#include "runtime/weights/quantized/code_reader.h"

#include "runtime/weights/gguf_cursor.h"

namespace trireme::weights {
namespace {

constexpr int64_t kWordBits = 32;

}  // namespace

int64_t PackedWords(int64_t codes, int bits, bool is_padded) {
  const int64_t per_word = kWordBits / bits;
  return is_padded ? (codes + per_word - 1) / per_word : (codes * bits + kWordBits - 1) / kWordBits;
}

void WordCodes::Read(topology::Range rows, topology::Range columns, uint8_t* codes) const {
  const WordPacking& p = packing_;
  const topology::Range packed = p.is_along_columns ? columns : rows;
  const topology::Range runs = p.is_along_columns ? rows : columns;
  const int64_t packed_step = p.is_along_columns ? 1 : columns.size();
  const int64_t run_step = p.is_along_columns ? columns.size() : 1;
  const uint32_t mask = (1U << p.bits) - 1;
  const int64_t per_word = kWordBits / p.bits;
  for (int64_t run = runs.begin; run < runs.end; ++run) {
    const auto word_at = [&](int64_t index) {
      const int64_t word = run * p.run_stride + index * p.word_stride;
      return LoadUnaligned<uint32_t>(words_ + word * 4) + p.word_addend;
    };
    uint8_t* target = codes + (run - runs.begin) * run_step;
    int64_t loaded = -1;
    uint32_t word = 0;
    for (int64_t i = packed.begin; i < packed.end; ++i, target += packed_step) {
      const int64_t bit =
          p.is_padded ? i / per_word * kWordBits + i % per_word * p.bits : i * p.bits;
      if (bit / kWordBits != loaded) {
        loaded = bit / kWordBits;
        word = word_at(loaded);
      }
      int64_t shift = bit % kWordBits;
      if (p.is_interleaved) {
        shift = 4 * (i % 2 * 4 + i % 8 / 2);
      }
      uint32_t code = word >> shift;
      if (shift + p.bits > kWordBits) {
        code |= word_at(loaded + 1) << (kWordBits - shift);
      }
      *target = static_cast<uint8_t>((code + p.code_addend) & mask);
    }
  }
}

void ByteCodes::Read(topology::Range rows, topology::Range columns, uint8_t* codes) const {
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const uint8_t* const source = bytes_ + row * columns_;
    for (int64_t column = columns.begin; column < columns.end; ++column) {
      *codes++ = source[column] ^ flip_;
    }
  }
}

void NibbleCodes::Read(topology::Range rows, topology::Range columns, uint8_t* codes) const {
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t column = columns.begin; column < columns.end; ++column) {
      const int64_t element = row * columns_ + column;
      const int shift = element % 2 == 0 ? first_shift_ : 4 - first_shift_;
      *codes++ = static_cast<uint8_t>(bytes_[element / 2] >> shift & 15);
    }
  }
}

void SlabCodes::Read(topology::Range rows, topology::Range columns, uint8_t* codes) const {
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const uint8_t* const source = bytes_ + row % slab_rows_ * columns_;
    const int64_t shift = 2 * (row / slab_rows_);
    for (int64_t column = columns.begin; column < columns.end; ++column) {
      *codes++ = static_cast<uint8_t>(source[column] >> shift & 3);
    }
  }
}

}  // namespace trireme::weights
