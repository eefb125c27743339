#include "runtime/comm/tree_sum.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace trireme::comm {
namespace {

TEST(TreeSumTest, AddsPairsBeforePairsOfPairs) {
  // (1e8 + 1) loses the 1 (spacing of floats near 1e8 is 8), (-1e8 + 1) as well: 0, where a chain
  // from the left gives ((1e8 + 1) - 1e8) + 1 = 1.
  const std::vector<std::vector<float>> parts(
      {std::vector<float>(5, 1e8F), std::vector<float>(5, 1.0F), std::vector<float>(5, -1e8F),
       std::vector<float>(5, 1.0F)});
  const float* const pointers[] = {parts[0].data(), parts[1].data(), parts[2].data(),
                                   parts[3].data()};
  std::vector<float> sum(6, 7.0F);
  AddInTreeOrder(pointers, 5, sum.data());
  EXPECT_EQ(sum, (std::vector<float>{0, 0, 0, 0, 0, 7}));
}

TEST(TreeSumTest, AddsEightPartsInPlace) {
  std::vector<std::vector<float>> parts;
  std::vector<const float*> pointers;
  for (int part = 0; part < 8; ++part) {
    parts.emplace_back(9, static_cast<float>(1 << part));
  }
  for (const std::vector<float>& part : parts) {
    pointers.push_back(part.data());
  }
  AddInTreeOrder(pointers, 9, parts[3].data());
  EXPECT_EQ(parts[3], std::vector<float>(9, 255.0F));
}

TEST(TreeSumTest, ReplacesEveryPartByTheSum) {
  // 37 is two lines and five more. As above, the order shows: 0 and not 1 where all are like this.
  for (const int ranks : {1, 2, 4, 8}) {
    constexpr int64_t kCount = 37;
    std::vector<std::vector<float>> parts;
    std::vector<float*> pointers;
    std::vector<const float*> copies;
    for (int part = 0; part < ranks; ++part) {
      parts.emplace_back(kCount + 1, part % 2 == 1 ? 1.0F : part % 4 == 0 ? 1e8F : -1e8F);
      for (int64_t i = 0; i < kCount; i += 3) {
        parts.back()[static_cast<size_t>(i)] = static_cast<float>((part + 1) * (i + 1));
      }
    }
    const std::vector<std::vector<float>> before = parts;
    for (int part = 0; part < ranks; ++part) {
      pointers.push_back(parts[static_cast<size_t>(part)].data());
      copies.push_back(before[static_cast<size_t>(part)].data());
    }
    std::vector<float> sum(kCount);
    AddInTreeOrder(copies, kCount, sum.data());
    EXPECT_EQ(sum[36], static_cast<float>(ranks * (ranks + 1) / 2 * 37));
    ReplaceByTreeSum(pointers, kCount);
    for (int part = 0; part < ranks; ++part) {
      const std::vector<float>& replaced = parts[static_cast<size_t>(part)];
      EXPECT_EQ(std::memcmp(replaced.data(), sum.data(), kCount * sizeof(float)), 0) << ranks;
      EXPECT_EQ(replaced.back(), before[static_cast<size_t>(part)].back())
          << "written past the end";
    }
  }
}

TEST(TreeSumTest, NegativeZeroChangesNoSum) {
  const float values[] = {-0.0F, 0.0F, 1.5F, -1e-45F};
  const float nothing[] = {-0.0F, -0.0F, -0.0F, -0.0F};
  float sum[4];
  const float* const pointers[] = {values, nothing};
  AddInTreeOrder(pointers, 4, sum);
  EXPECT_EQ(std::memcmp(sum, values, sizeof(sum)), 0);
}

}  // namespace
}  // namespace trireme::comm
