#include "runtime/serve/attempt_fence.h"

#include <gtest/gtest.h>

#include "runtime/base/error_reason.h"

namespace trireme::serve {
namespace {

TEST(AttemptFence, AdmitsRisingAttemptsAndNamesTheReplacedOne) {
  AttemptFence fence(10);
  EXPECT_EQ(fence.Admit("a", 1).value(), 0u);
  EXPECT_EQ(fence.Admit("a", 4).value(), 1u);
  EXPECT_EQ(fence.Admit("b", 2).value(), 0u);
}

TEST(AttemptFence, RefusesEqualAndLowerAttempts) {
  AttemptFence fence(10);
  ASSERT_TRUE(fence.Admit("a", 3).ok());
  for (const uint32_t attempt : {3u, 2u, 1u}) {
    const auto admitted = fence.Admit("a", attempt);
    EXPECT_EQ(admitted.status().code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(ReasonOf(admitted.status()), kReasonRequestId);
  }
}

TEST(AttemptFence, ForgetsTheOldestRequestFirst) {
  AttemptFence fence(2);
  ASSERT_TRUE(fence.Admit("a", 5).ok());
  ASSERT_TRUE(fence.Admit("b", 5).ok());
  ASSERT_TRUE(fence.Admit("c", 5).ok());
  EXPECT_EQ(fence.Admit("c", 6).value(), 5u);
  EXPECT_EQ(fence.Admit("b", 6).value(), 5u);
  EXPECT_EQ(fence.Admit("a", 1).value(), 0u);
}

}  // namespace
}  // namespace trireme::serve
