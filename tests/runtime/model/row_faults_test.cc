#include "runtime/model/row_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace trireme::model {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class RowFaultsTest : public ::testing::Test {
 protected:
  RowFaultsTest() : pool_(3) { execution_.pool = &pool_; }

  std::vector<int32_t> Find(const std::vector<float>& x, int64_t columns, int32_t place,
                            std::vector<int32_t> faults) {
    FindFaults(execution_, x.data(), columns, place, absl::MakeSpan(faults));
    return faults;
  }

  kernels::cpu::ThreadPool pool_;
  kernels::Execution execution_;
};

TEST_F(RowFaultsTest, ARowIsMarkedWithTheFirstPlace) {
  const std::vector<float> x = {1, 2, kNaN, 0, -kInfinity, 3, kInfinity, 4};
  EXPECT_THAT(Find(x, 2, 5, std::vector<int32_t>(4, kNoFault)), ElementsAre(kNoFault, 5, 5, 5));
  EXPECT_THAT(Find(x, 2, 5, {kNoFault, kFaultInEmbedding, 5, kFaultInOutput}),
              ElementsAre(kNoFault, kFaultInEmbedding, 5, 5));
}

TEST_F(RowFaultsTest, TheLargestAndSmallestNumbersAreNumbers) {
  using Limits = std::numeric_limits<float>;
  EXPECT_THAT(Find({Limits::max(), Limits::lowest(), Limits::denorm_min(), -0.0F}, 2, 1,
                   {kNoFault, kNoFault}),
              Each(kNoFault));
}

// Rows of all widths around the vectors' and of many tasks; one bad value anywhere.
TEST_F(RowFaultsTest, OneBadValueAnywhereIsFound) {
  for (const int64_t columns : {1, 3, 127, 128, 129, 576, 1000}) {
    const int64_t rows = 200'000 / columns + 3;
    std::vector<float> x(static_cast<size_t>(rows * columns), 1.5F);
    for (int64_t at = 0; at < rows * columns; at += 1 + rows * columns / 23) {
      x[static_cast<size_t>(at)] = kNaN;
      std::vector<int32_t> wanted(static_cast<size_t>(rows), kNoFault);
      wanted[static_cast<size_t>(at / columns)] = 2;
      EXPECT_EQ(Find(x, columns, 2, std::vector<int32_t>(static_cast<size_t>(rows), kNoFault)),
                wanted)
          << columns << " columns, value " << at;
      x[static_cast<size_t>(at)] = 1.5F;
    }
  }
}

TEST_F(RowFaultsTest, FaultsTravelInTheRowsThatHaveThem) {
  const std::vector<int32_t> faults = {kNoFault, kFaultInEmbedding, 0, 4000, kNoFault};
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  WriteFaults(faults, 2, x.data());
  EXPECT_THAT((std::vector<float>{x[0], x[1], x[8], x[9]}), ElementsAre(1, 2, 9, 10));
  std::vector<int32_t> read(5, kNoFault);
  ReadFaults(execution_, x.data(), 2, 4001, absl::MakeSpan(read));
  EXPECT_EQ(read, faults);
}

TEST_F(RowFaultsTest, ANaNOfAnotherOriginIsOfTheStageBefore) {
  const std::vector<float> x = {kNaN, 1, 1, -kNaN, kInfinity, 1};
  std::vector<int32_t> read(3, kNoFault);
  ReadFaults(execution_, x.data(), 2, 11, absl::MakeSpan(read));
  EXPECT_THAT(read, Each(11));
}

}  // namespace
}  // namespace trireme::model
