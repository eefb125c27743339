// The grids of the IQ formats: tables of short vectors of small magnitudes that were found by
// training and are part of the format, and how a vector with its signs becomes codes. An entry
// holds its coordinates as digits, the first in the lowest bits: eight of 2 bits (grids 1 and 2) or
// four of 3 bits (grids 3).
#ifndef TRIREME_KERNELS_FORMATS_IQ_GRIDS_H_
#define TRIREME_KERNELS_FORMATS_IQ_GRIDS_H_

#include <bit>
#include <cstdint>

#include "kernels/formats/weight_group.h"

namespace trireme::kernels {

template <int kEntries>
struct IqGrid {
  uint16_t entries[kEntries];

  uint16_t operator[](int index) const { return entries[index]; }
};

extern const IqGrid<2048> kGrid1S;   // digits 0, 1, 2 are -1, 0, 1
extern const IqGrid<256> kGrid2XXS;  // digits 0, 1, 2 are 8, 25, 43
extern const IqGrid<512> kGrid2XS;
extern const IqGrid<1024> kGrid2S;
extern const IqGrid<256> kGrid3XXS;  // digits 0 .. 7 are 4, 12, 20, 28, 36, 44, 52, 62
extern const IqGrid<512> kGrid3S;    // digits 0 .. 7 are 1, 3 .. 15

// An entry, and for each coordinate a bit that is set where it is negative.
struct GridRun {
  uint16_t entry;
  uint8_t signs;
};

// The eight signs that the lowest seven bits stand for: their number of ones is even.
inline uint8_t SignsOf(uint32_t seven_bits) {
  const uint32_t signs = seven_bits & 127U;
  return static_cast<uint8_t>(signs | (static_cast<uint32_t>(std::popcount(signs)) & 1U) << 7);
}

inline float SignOf(GridRun run, int coordinate) {
  return (run.signs >> coordinate & 1) != 0 ? -1.0F : 1.0F;
}
inline int Grid2Digit(GridRun run, int coordinate) { return run.entry >> (2 * coordinate) & 3; }
inline int Grid3Digit(GridRun run, int coordinate) { return run.entry >> (3 * coordinate) & 7; }

// The eight codes of Codebook::kGrid1 or kGrid2: digit, and 4 where the sign is negative.
inline void StoreGrid2(GridRun run, uint8_t* codes) {
  for (int h = 0; h < 2; ++h) {
    uint32_t digits = run.entry >> (8 * h) & 0xFFU;
    digits = (digits | digits << 12) & 0x000F000FU;
    digits = (digits | digits << 6) & 0x03030303U;
    StoreFour(codes + 4 * h, digits | SpreadFourBits(run.signs >> (4 * h)) << 2);
  }
}

// The four codes of Codebook::kGrid3XXS or kGrid3S: digit, and 8 where the sign is negative.
inline void StoreGrid3(GridRun run, uint8_t* codes) {
  uint32_t digits = run.entry;
  digits = (digits | digits << 10) & 0x003F003FU;
  digits = (digits | digits << 5) & 0x07070707U;
  StoreFour(codes, digits | SpreadFourBits(run.signs) << 3);
}

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_IQ_GRIDS_H_
