#include "topology/link_model.h"

#include <gtest/gtest.h>

namespace trireme::topology {
namespace {

constexpr Link kLink = {.bytes_per_second = 1e6, .latency_seconds = 1e-3};

TEST(LinkModelTest, AMessageCostsItsLatencyAndItsBytes) {
  EXPECT_DOUBLE_EQ(SendSeconds(kLink, 5000), 0.006);  // 1 ms + 5 kB at 1 MB/s
}

TEST(LinkModelTest, AnAllReduceTakesARoundForEachDoubling) {
  EXPECT_DOUBLE_EQ(AllReduceSeconds(kLink, 1, 5000), 0);
  EXPECT_DOUBLE_EQ(AllReduceSeconds(kLink, 2, 5000), 0.006);
  EXPECT_DOUBLE_EQ(AllReduceSeconds(kLink, 8, 5000), 0.018);
}

}  // namespace
}  // namespace trireme::topology
