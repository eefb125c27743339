// The codebooks: what a stored code means where it is an index, as small signed integers. At most
// 16 entries, so that one byte shuffle looks up a vector of codes.
#ifndef TRIREME_KERNELS_FORMATS_CODEBOOK_H_
#define TRIREME_KERNELS_FORMATS_CODEBOOK_H_

#include <cstdint>

namespace trireme::kernels {

enum class Codebook : uint8_t {
  kNone,       // the code is the number itself
  kNonLinear,  // IQ4_NL, IQ4_XS
  kE2M1,       // twice the 4-bit floating point number
  // Digits of iq_grids.h with a sign above them, times 8 in kGrid1.
  kGrid1,
  kGrid2,
  kGrid3XXS,
  kGrid3S,
};

inline constexpr int kCodebookEntries = 16;

struct CodebookValues {
  int8_t values[kCodebookEntries];
};

// Codes of kNone stand for themselves; beyond a codebook's last entry are zeros.
constexpr CodebookValues ValuesOf(Codebook codebook) {
  switch (codebook) {
    case Codebook::kNone:
      return {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
    case Codebook::kNonLinear:
      return {{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}};
    case Codebook::kE2M1:
      return {{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}};
    case Codebook::kGrid1:  // eight times -1, 0 or 1, plus one, or minus one
      return {{-7, 1, 9, 0, -9, -1, 7}};
    case Codebook::kGrid2:
      return {{8, 25, 43, 0, -8, -25, -43}};
    case Codebook::kGrid3XXS:
      return {{4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62}};
    case Codebook::kGrid3S:
      return {{1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15}};
  }
  __builtin_unreachable();
}

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_CODEBOOK_H_
