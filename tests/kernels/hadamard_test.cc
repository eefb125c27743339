#include "kernels/formats/hadamard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/kernels/check_harness.h"

namespace trireme::kernels {
namespace {

std::vector<float> Transformed(std::vector<float> row) {
  ApplyHadamard(row.data(), static_cast<int64_t>(row.size()));
  return row;
}

std::vector<float> RandomRow(int64_t count, uint64_t seed) {
  std::vector<float> row(static_cast<size_t>(count));
  check::Random(seed).FillNormal(row.data(), count);
  return row;
}

// specs/kv-and-spec.md 4.
TEST(HadamardTest, GivesTheWorkedNumbers) {
  EXPECT_EQ(Transformed({8, 0, 0, 0}), (std::vector<float>{4, 4, 4, 4}));
  EXPECT_EQ(Transformed({4, 4, 4, 4}), (std::vector<float>{8, 0, 0, 0}));
  EXPECT_EQ(Transformed({1, -2, 3, 10}), (std::vector<float>{6, -2, -7, 5}));
}

TEST(HadamardTest, CutsARowIntoPowersOfTwo) {
  EXPECT_EQ(HadamardRun(0, 64), 64);
  EXPECT_EQ(HadamardRun(0, 80), 64);
  EXPECT_EQ(HadamardRun(64, 80), 16);
  EXPECT_EQ(HadamardRun(0, 576), 512);
  EXPECT_EQ(HadamardRun(96, 112), 16);
}

// A sum of n numbers by log2 n additions, then a product with a rounded factor, in float32.
TEST(HadamardTest, IsTheMatrixOfEachRun) {
  for (const int64_t count : {1, 2, 8, 24, 64, 80, 96, 128, 256, 576}) {
    const std::vector<float> row = RandomRow(count, static_cast<uint64_t>(count));
    const std::vector<float> actual = Transformed(row);
    for (int64_t first = 0; first < count; first += HadamardRun(first, count)) {
      const int64_t run = HadamardRun(first, count);
      const double root = std::sqrt(static_cast<double>(run));
      for (int64_t i = 0; i < run; ++i) {
        double sum = 0;
        double magnitudes = 0;
        for (int64_t j = 0; j < run; ++j) {
          const double x = row[static_cast<size_t>(first + j)];
          sum += std::popcount(static_cast<uint64_t>(i & j)) % 2 == 0 ? x : -x;
          magnitudes += std::fabs(x);
        }
        const double roundings = std::log2(static_cast<double>(run)) + 3;
        EXPECT_NEAR(static_cast<double>(actual[static_cast<size_t>(first + i)]), sum / root,
                    roundings * 0x1p-24 * magnitudes / root)
            << count << " channel " << first + i;
      }
    }
  }
}

TEST(HadamardTest, KeepsProductsAndIsItsOwnInverse) {
  for (const int64_t count : {64, 80, 96, 576}) {
    const std::vector<float> query = RandomRow(count, 1);
    const std::vector<float> key = RandomRow(count, 2);
    const std::vector<float> query_there = Transformed(query);
    const std::vector<float> key_there = Transformed(key);
    EXPECT_NEAR(std::inner_product(query.begin(), query.end(), key.begin(), 0.0),
                std::inner_product(query_there.begin(), query_there.end(), key_there.begin(), 0.0),
                1e-6 * static_cast<double>(count));
    const std::vector<float> back = Transformed(key_there);
    for (size_t i = 0; i < key.size(); ++i) {
      EXPECT_NEAR(back[i], key[i], 4e-6F);
    }
  }
}

}  // namespace
}  // namespace trireme::kernels
