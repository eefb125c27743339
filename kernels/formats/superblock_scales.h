// The 6-bit scale and minimum factors that Q4_K and Q5_K pack into 12 bytes for their 8 groups.
#ifndef TRIREME_KERNELS_FORMATS_SUPERBLOCK_SCALES_H_
#define TRIREME_KERNELS_FORMATS_SUPERBLOCK_SCALES_H_

#include <cstdint>

namespace trireme::kernels {

struct SuperblockFactors {
  uint8_t scale;    // 0..63
  uint8_t minimum;  // 0..63
};

inline SuperblockFactors FactorsOf(const uint8_t (&packed)[12], int group_index) {
  const int j = group_index;
  if (j < 4) {
    return {static_cast<uint8_t>(packed[j] & 63), static_cast<uint8_t>(packed[j + 4] & 63)};
  }
  return {static_cast<uint8_t>((packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4),
          static_cast<uint8_t>((packed[j + 4] >> 4) | (packed[j] >> 6) << 4)};
}

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_SUPERBLOCK_SCALES_H_
