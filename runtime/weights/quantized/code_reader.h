// Reads the codes of a matrix's weights, or of its zero points, out of the ways in which published
// checkpoints pack them. A code is an unsigned number of at most 8 bits; what it stands for is said
// elsewhere (quantized_matrix.h).
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_CODE_READER_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_CODE_READER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "topology/partition.h"

namespace trireme::weights {

// Immutable; threads may read it at any time. The bytes outlive it.
class CodeReader {
 public:
  virtual ~CodeReader() = default;

  // Of rows x columns, both inside the matrix, into codes [rows][columns].
  virtual void Read(topology::Range rows, topology::Range columns, uint8_t* codes) const = 0;
};

// Codes in 32-bit words (little endian, lowest bits first), packed along the matrix's columns or
// rows.
struct WordPacking {
  int bits = 4;                  // 1 to 8
  bool is_along_columns = true;  // the direction in which codes share a word
  bool is_padded = false;  // each word holds 32 / bits codes; else codes are one stream of bits
  bool is_interleaved = false;  // AWQ: of 8 codes in a word, those of even index come first
  int64_t word_stride = 1;      // words from one word of a run to the next
  int64_t run_stride = 0;       // words from one run (row or column) to the next
  // Added modulo 2^32 to each word, modulo 2^bits to each code: how GPTQ's first format stores zero
  // points.
  uint32_t word_addend = 0;
  uint32_t code_addend = 0;
};

// Words that `codes` codes need.
int64_t PackedWords(int64_t codes, int bits, bool is_padded);

class WordCodes final : public CodeReader {
 public:
  WordCodes(absl::Span<const uint8_t> words, const WordPacking& packing)
      : words_(words.data()), packing_(packing) {}

  void Read(topology::Range rows, topology::Range columns, uint8_t* codes) const override;

 private:
  const uint8_t* const words_;
  const WordPacking packing_;
};

// A byte a code, rows one after another. Signed bytes become codes 128 larger.
class ByteCodes final : public CodeReader {
 public:
  ByteCodes(absl::Span<const uint8_t> bytes, int64_t columns, bool is_signed)
      : bytes_(bytes.data()), columns_(columns), flip_(is_signed ? 0x80 : 0) {}

  void Read(topology::Range rows, topology::Range columns, uint8_t* codes) const override;

 private:
  const uint8_t* const bytes_;
  const int64_t columns_;
  const uint8_t flip_;
};

// Two codes a byte over the rows one after another.
class NibbleCodes final : public CodeReader {
 public:
  NibbleCodes(absl::Span<const uint8_t> bytes, int64_t columns, bool is_high_first)
      : bytes_(bytes.data()), columns_(columns), first_shift_(is_high_first ? 4 : 0) {}

  void Read(topology::Range rows, topology::Range columns, uint8_t* codes) const override;

 private:
  const uint8_t* const bytes_;
  const int64_t columns_;
  const int first_shift_;
};

// Four rows a byte: bits 2 i and 2 i + 1 of byte [r, c] belong to row i * rows / 4 + r.
class SlabCodes final : public CodeReader {
 public:
  SlabCodes(absl::Span<const uint8_t> bytes, int64_t rows, int64_t columns)
      : bytes_(bytes.data()), slab_rows_(rows / 4), columns_(columns) {}

  void Read(topology::Range rows, topology::Range columns, uint8_t* codes) const override;

 private:
  const uint8_t* const bytes_;
  const int64_t slab_rows_;
  const int64_t columns_;
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_CODE_READER_H_
