#include "kernels/cpu/machine_limits.h"

#include "gtest/gtest.h"

namespace trireme::kernels::cpu {
namespace {

// Bounds that any machine of the last fifteen years and of the next few meets.
TEST(MachineLimits, AreOfThisWorld) {
  const MachineLimits limits = MeasureMachineLimits(/*threads=*/1, /*repeats=*/1);
  EXPECT_GT(limits.stream_bytes_per_second, 1e7);
  EXPECT_LT(limits.stream_bytes_per_second, 1e13);
  EXPECT_GT(limits.float_operations_per_second, 1e7);
  EXPECT_LT(limits.float_operations_per_second, 1e13);
  EXPECT_GT(limits.bfloat16_operations_per_second, 1e7);
  EXPECT_LT(limits.bfloat16_operations_per_second, 1e14);
  EXPECT_GT(limits.byte_operations_per_second, 1e7);
  EXPECT_LT(limits.byte_operations_per_second, 1e14);
  EXPECT_GT(limits.clock_hz, 1e6);
  EXPECT_LT(limits.clock_hz, 1e11);
}

}  // namespace
}  // namespace trireme::kernels::cpu
