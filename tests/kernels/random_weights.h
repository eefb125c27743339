// Seeded matrices in every storage format.
#ifndef TRIREME_TESTS_KERNELS_RANDOM_WEIGHTS_H_
#define TRIREME_TESTS_KERNELS_RANDOM_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/formats/weight_format.h"
#include "tests/kernels/check_harness.h"

namespace trireme::kernels::check {

enum class WeightFill {
  kOrdinary,      // finite scales of ordinary size, any codes
  kAnyBits,       // every byte random: infinite, NaN and negative scales among them
  kExtremeCodes,  // all codes at one end of their range, scale 1
  kTinyScales,    // any codes; scales and minima denormal or zero where they are half precision
};

struct StoredMatrix {
  std::vector<std::byte> bytes;  // [rows] rows of row_bytes
  int64_t row_bytes = 0;
};

// Rows hold whole storage blocks, `columns` rounded up to them.
StoredMatrix RandomMatrix(Random& random, WeightFormat format, int64_t rows, int64_t columns,
                          WeightFill fill);

}  // namespace trireme::kernels::check

#endif  // TRIREME_TESTS_KERNELS_RANDOM_WEIGHTS_H_
